import { randomUUID } from 'node:crypto'
import { type Scan, scanJson } from './scan.ts'

type Raw = { readonly rawJSON: string }
// TypeScript does not know these yet, Node 24 does
const json = JSON as unknown as { rawJSON(text: string): Raw; isRawJSON(value: unknown): value is Raw }

/** Whether a value is a number that JavaScript cannot hold. JSON.stringify writes it as it was sent. */
export const isExactNumber = (value: unknown): value is object => json.isRawJSON(value)

/** A number as it was sent: its text, where JavaScript could not hold it; null for anything else. */
export const numberText = (value: unknown): string | null => {
  if (typeof value === 'number') return String(value)
  return json.isRawJSON(value) ? value.rawJSON : null
}

/** A number's significant digits and its exponent: 2.50e1 and 25 are the same. */
const digitsOf = (number: string): string => {
  const [, sign, whole = '', part = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(number) ?? []
  const digits = `${whole}${part}`.replace(/^0+/, '')
  // no regular expression: one for trailing zeros would backtrack at each of half a million zeros in the middle
  let end = digits.length
  while (end > 0 && digits[end - 1] === '0') end -= 1
  return end === 0 ? '0' : `${sign}${digits.slice(0, end)}e${Number(exponent) - part.length + digits.length - end}`
}

const exactNumber = (source: string): unknown => {
  const value = Number(source)
  if (String(value) === source) return value
  // JavaScript writes whole numbers as plain digits up to 21 of them
  if (source.length <= 21 && !/[.eE]/.test(source)) return json.rawJSON(source)
  return digitsOf(source) === digitsOf(String(value)) ? value : json.rawJSON(source)
}

/**
 * Parses JSON that was scanned, without changing a number or a key. JSON.parse with a reviver takes twenty times as long as without, so numbers that a
 * double may change are parsed as strings that begin with U+0000, which no string of the text does. JSON.parse of V8 13.6 (Node 24) takes a key with
 * escapes for a key that an earlier text had: after {"k":1,"k\\":2} it reads {"k":1,"k\"":2} with the key k\. So keys with escapes are parsed under
 * other names. `text` is what the bytes say, where the caller has decoded them already.
 */
export const parseExact = (
  bytes: Buffer,
  { inexact, escapedKeys }: Pick<Scan, 'inexact' | 'escapedKeys'>,
  text?: string,
): unknown => {
  if (escapedKeys.length === 0)
    return inexact.length === 0 ? JSON.parse(text ?? bytes.toString()) : withNumbers(JSON.parse(marked(bytes, inexact)))
  const renamed = withoutEscapes(bytes, escapedKeys)
  const scan = scanJson(renamed.bytes)
  return withNames(parseExact(renamed.bytes, { inexact: scan.inexact, escapedKeys: [] }), renamed.names)
}

/** Names that no caller can guess, so that no text has them. */
const unusedPrefix = randomUUID()

/** The text with keys that have no escapes in the place of those that have, and what they stand for. */
const withoutEscapes = (bytes: Buffer, keys: readonly number[]) => {
  const names = new Map<string, string>()
  const parts: Buffer[] = []
  let from = 0
  for (let index = 0; index < keys.length; index += 2) {
    const start = keys[index] as number
    const end = keys[index + 1] as number
    const name = `${unusedPrefix} ${index}`
    names.set(name, JSON.parse(bytes.toString('utf8', start, end)))
    parts.push(bytes.subarray(from, start), Buffer.from(`"${name}"`))
    from = end
  }
  parts.push(bytes.subarray(from))
  return { bytes: Buffer.concat(parts), names }
}

/** Gives the keys their names back, in their order. */
const withNames = (value: unknown, names: ReadonlyMap<string, string>): unknown => {
  if (typeof value !== 'object' || value === null || json.isRawJSON(value)) return value
  if (Array.isArray(value)) return value.map((item) => withNames(item, names))
  const made = {}
  for (const [key, item] of Object.entries(value))
    Object.defineProperty(made, names.get(key) ?? key, { value: withNames(item, names), ...ordinary })
  return made
}

const before = Buffer.from('"\\u0000')
const quote = 34

/** A loop is faster than a call of copy for a few bytes. */
const copy = (source: Buffer, start: number, end: number, out: Buffer, to: number): number => {
  if (end - start > 64) return to + source.copy(out, to, start, end)
  for (let index = start; index < end; index += 1) out[to + index - start] = source[index] as number
  return to + end - start
}

/** The text with these numbers as strings. */
const marked = (bytes: Buffer, inexact: readonly number[]): string => {
  const out = Buffer.allocUnsafe(bytes.length + (inexact.length / 2) * (before.length + 1))
  let from = 0
  let to = 0
  for (let index = 0; index < inexact.length; index += 2) {
    const start = inexact[index] as number
    const end = inexact[index + 1] as number
    to = copy(bytes, from, start, out, to)
    to = copy(before, 0, before.length, out, to)
    to = copy(bytes, start, end, out, to)
    out[to++] = quote
    from = end
  }
  to = copy(bytes, from, bytes.length, out, to)
  return out.toString('utf8', 0, to)
}

const ordinary = { configurable: true, enumerable: true, writable: true }

/** Restores the numbers that are held as strings; changes the given value in place. */
const withNumbers = (value: unknown): unknown => {
  if (typeof value === 'string') return value.charCodeAt(0) === 0 ? exactNumber(value.slice(1)) : value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const item: unknown = value[index]
      if (typeof item === 'string' || typeof item === 'object') value[index] = withNumbers(item)
    }
    return value
  }
  const object = value as Record<string, unknown>
  for (const key of Object.keys(object)) {
    const item = object[key]
    if (typeof item !== 'string' && typeof item !== 'object') continue
    const made = withNumbers(item)
    if (made === item) continue
    // an assignment to __proto__ would set no property
    if (key === '__proto__') Object.defineProperty(object, key, { value: made, ...ordinary })
    else object[key] = made
  }
  return value
}

/** The reviver of JSON.parse that keeps each number as its text. */
const keepDigits = ((_key: string, value: unknown, { source = '' }: { source?: string }) =>
  typeof value === 'number' ? json.rawJSON(source) : value) as Parameters<typeof JSON.parse>[1]

/** JSON in which every number is kept as it is spelled: 1.10 stays 1.10. V8 gives a reviver no source of numbers beside keys with escapes. */
export const spelledJson = (text: string): unknown => {
  const bytes = text.includes('\\') ? Buffer.from(text) : null
  const keys = bytes ? scanJson(bytes).escapedKeys : []
  if (!bytes || keys.length === 0) return JSON.parse(text, keepDigits)
  const renamed = withoutEscapes(bytes, keys)
  return withNames(JSON.parse(renamed.bytes.toString(), keepDigits), renamed.names)
}

/** A number that a double may change, at a path where the schema has a number. */
const suspect = /[:,[\s]-?(?:[0-9.]{16}|[0-9.]+[eE])/

/** JSON that Postgres made, every number and key as it is written there. */
export const exactJson = (text: string): unknown => {
  if (!suspect.test(text) && !text.includes('\\')) return JSON.parse(text)
  const bytes = Buffer.from(text)
  const scan = scanJson(bytes)
  return scan.problem === null ? parseExact(bytes, scan) : JSON.parse(text)
}

/**
 * The path where a schema took the object that represents a number for an object, or changed its value; else null. A number that the
 * schema left out is not lost.
 */
export const lostNumber = (sent: unknown, made: unknown): readonly string[] | null => {
  if (made === undefined || typeof sent !== 'object' || sent === null) return null
  if (isExactNumber(sent)) return sent === made ? null : []
  if (sent === made || typeof made !== 'object' || made === null) return null
  for (const [key, item] of Object.entries(sent)) {
    // constructor, toString and __proto__ are on every object
    const lost = Object.hasOwn(made, key) ? lostNumber(item, (made as Record<string, unknown>)[key]) : null
    if (lost) return [key, ...lost]
  }
  return null
}
