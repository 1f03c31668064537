import type { ProviderName } from '#server/providers/upstream_requests.ts'

/** A part of a message, in OpenAI's chat format. */
export type Part =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string; readonly detail?: string | undefined } }

export type Message = {
  readonly role: 'system' | 'user' | 'assistant'
  readonly content: string | readonly Part[]
}

export type Format =
  | { readonly type: 'text' }
  | { readonly type: 'json_object' }
  | { readonly type: 'json_schema'; readonly json_schema: { readonly name: string; readonly schema: unknown } }

export type ChatRequest = {
  readonly model: string
  readonly system: string | null
  readonly messages: readonly Message[]
  readonly maxTokens: number
  readonly format: Format
  readonly isStream: boolean
}

/** A request as a provider's documents describe it, without its key. */
export type Wire = {
  readonly path: string
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly json: unknown
}

/** Tokens as far as the provider has reported them. */
export type Usage = { readonly input?: number; readonly output?: number }

/** Why a model stopped, in OpenAI's words. */
export type FinishReason = 'stop' | 'length' | 'content_filter' | 'other'

/** One event of a stream, or a whole response: text, and what else it reports. */
export type Piece = {
  readonly text: string
  readonly usage?: Usage
  readonly finishReason?: FinishReason
  /** The last event of the stream. */
  readonly isLast?: boolean
  /** The provider reports an error within the stream. */
  readonly isError?: boolean
}

/** How one provider's API is spoken. */
export type Dialect = {
  readonly provider: ProviderName
  readonly headers: (apiKey: string) => Readonly<Record<string, string>>
  readonly request: (chat: ChatRequest) => Wire
  /** The request of a body in the provider's own format; null when the body lacks its model. */
  readonly native: (body: Readonly<Record<string, unknown>>) => Wire | null
  /** Reads a response; null when it is none of this API. */
  readonly read: (body: unknown) => Piece | null
  /** Reads the data of one server-sent event; null for one that says nothing. */
  readonly readEvent: (data: string) => Piece | null
  /** Whether a stream ends without an event that says so. */
  readonly endsSilently: boolean
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A property of a value that may be anything. */
export const at = (value: unknown, ...path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>(
    (held, key) => (typeof held === 'object' && held !== null ? Reflect.get(held, key) : undefined),
    value,
  )

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** A number of tokens. */
export const countOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined

export const usageOf = (input: unknown, output: unknown): Usage => {
  const read = { input: countOf(input), output: countOf(output) }
  return {
    ...(read.input === undefined ? {} : { input: read.input }),
    ...(read.output === undefined ? {} : { output: read.output }),
  }
}

export const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export const partsOf = ({ content }: Message): readonly Part[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content

/** The media type and the base64 of a data URL; null for another URL. */
export const dataUrl = (url: string): { readonly type: string; readonly data: string } | null => {
  const [, type, data] = /^data:([\w.+-]+\/[\w.+-]+);base64,([A-Za-z0-9+/=]+)$/.exec(url) ?? []
  return type && data ? { type, data } : null
}

/** What is said to a model whose API has no JSON mode, or none for this schema. */
const formatRule = 'Answer with one JSON object and nothing else: no explanation, no code fence.'

/**
 * The messages of a conversation for a model whose API takes no schema: the last one of the user ends with it. The schema is the caller's, as the messages
 * are, so it has no place in the system prompt.
 */
export const messagesWithSchema = ({ messages, format }: ChatRequest): readonly Message[] => {
  const talk = messages.filter(({ role }) => role !== 'system')
  if (format.type !== 'json_schema') return talk
  const schema = `The object must match this JSON Schema: ${JSON.stringify(format.json_schema.schema)}`
  const at = talk.findLastIndex(({ role }) => role === 'user')
  const asked = talk[at]
  if (!asked) return [...talk, { role: 'user', content: schema }]
  return talk.with(at, { role: 'user', content: [...partsOf(asked), { type: 'text', text: schema }] })
}

/** The system prompt with the system messages of an administrator and the rule for the format. */
export const systemOf = ({ system, messages, format }: ChatRequest, hasRule: boolean): string | null => {
  const texts = [
    system,
    ...messages
      .filter(({ role }) => role === 'system')
      .map((message) =>
        partsOf(message)
          .map((part) => (part.type === 'text' ? part.text : ''))
          .join(''),
      ),
    hasRule && format.type !== 'text' ? formatRule : null,
  ]
  return texts.filter(Boolean).join('\n\n') || null
}
