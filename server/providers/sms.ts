import type { Outbound } from '#server/providers/outbound.ts'

/** The `sms` integration: any provider that accepts one HTTPS POST per message. */
export type SmsConfig = {
  readonly url: string
  /** The body is JSON unless `content-type` sets another type. */
  readonly headers?: Readonly<Record<string, unknown>>
  /** `{{to}}` and `{{text}}` are replaced, escaped for the content type: `{"to": "{{to}}", "body": "{{text}}"}`. */
  readonly body_template: string
}

export type TextMessage = { readonly to: string; readonly text: string; readonly id: string }

/** Throws when the provider has not accepted the message. The error does not contain the provider's response, which may repeat the message. */
export const sendSms = async (outbound: Outbound, config: SmsConfig, message: TextMessage): Promise<void> => {
  const headers = Object.fromEntries(
    Object.entries(config.headers ?? {}).map(([name, value]) => [name.toLowerCase(), String(value)]),
  )
  const type = headers['content-type'] ?? 'application/json'
  const body = fill(config.body_template, message, escapeFor(type))
  const { statusCode, error } = await outbound.post({
    url: config.url,
    // providers that support the header deduplicate a message that is sent twice
    headers: { 'user-agent': 'Trellis', 'idempotency-key': message.id, ...headers, 'content-type': type },
    body,
    purpose: 'sms',
  })
  if (error !== null) throw new Error(`the provider of text messages cannot be reached: ${error}`)
  if (statusCode === null || statusCode < 200 || statusCode > 299)
    throw new Error(`the provider of text messages answered ${statusCode}`)
}

const escapeFor = (type: string): ((value: string) => string) => {
  if (/^application\/x-www-form-urlencoded\b/i.test(type)) return encodeURIComponent
  if (/\bjson\b/i.test(type)) return (value) => JSON.stringify(value).slice(1, -1)
  return (value) => value
}

const fill = (template: string, message: TextMessage, escaped: (value: string) => string): string =>
  template.replace(/\{\{\s*(to|text)\s*\}\}/g, (_, name: 'to' | 'text') => escaped(message[name]))
