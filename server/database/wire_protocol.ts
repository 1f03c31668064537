/**
 * Messages of Postgres's extended query protocol, as latin1 strings: a whole call is then one string and one write.
 * https://www.postgresql.org/docs/current/protocol-message-formats.html
 */

const int16 = (value: number) => String.fromCharCode((value >> 8) & 255, value & 255)
const int32 = (value: number) =>
  String.fromCharCode((value >>> 24) & 255, (value >>> 16) & 255, (value >>> 8) & 255, value & 255)

/** Text as the bytes of its UTF-8, one letter each. */
const bytesOf = (text: string) =>
  Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString('latin1')

const message = (type: string, body: string) => `${type}${int32(body.length + 4)}${body}`

const nothing = int32(-1)
const encoded = (value: string | null) => {
  if (value === null) return nothing
  const bytes = bytesOf(value)
  return int32(bytes.length) + bytes
}

const textType = int32(25)
const execute = message('E', `\0${int32(0)}`)
const sync = message('S', '')
const flush = message('H', '')

const bind = (statement: string, values: readonly (string | null)[], formats: readonly number[] = []) => {
  // the portal without a name, and every value as text
  let body = `\0${bytesOf(statement)}\0${int16(0)}${int16(values.length)}`
  for (const value of values) body += encoded(value)
  body += int16(formats.length)
  for (const format of formats) body += int16(format)
  return message('B', body)
}

export const wireProtocol = {
  execute,
  sync,
  /** Has Postgres send what it has answered so far. */
  flush,
  bind,
  close: (statement: string) => message('C', `S${bytesOf(statement)}\0`),
  /** `texts` parameters are declared as text, so that the statement needs no casts. */
  parse: (name: string, text: string, texts = 0) =>
    message('P', `${bytesOf(name)}\0${bytesOf(text)}\0${int16(texts)}${textType.repeat(texts)}`),
}
