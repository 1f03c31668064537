import { type NumberSpan, readNumber } from './numbers.ts'

/** Why a text cannot be taken: no JSON, too deep, a character or a number that Postgres cannot hold, too long once written out. */
export type Problem = 'syntax' | 'depth' | 'character' | 'number' | 'size'

export type Scan = {
  readonly problem: Problem | null
  /** Bytes that the numbers gain when Postgres writes them out: jsonb writes 1e999 as a thousand digits. */
  readonly gained: number
  /** Positions of numbers that a double may change: pairs of start and end. */
  readonly inexact: readonly number[]
  /** Positions of keys with escapes, in their quotes: pairs of start and end. */
  readonly escapedKeys: readonly number[]
}

type State = {
  problem: Problem | null
  gained: number
  /** Whether the string that was read last has escapes. */
  isEscaped: boolean
  readonly inexact: number[]
  readonly escapedKeys: number[]
  readonly span: NumberSpan
}

const [quote, backslash, comma, colon, minus, dot] = [34, 92, 44, 58, 45, 46]
const [openList, closeList, openObject, closeObject] = [91, 93, 123, 125]

// what the grammar allows at a position of the text
const [value, valueOrEnd, key, keyOrEnd, afterValue] = [0, 1, 2, 3, 4]

/** The deepest nesting that is scanned at all. */
const deepest = 1000

const isSpace = (byte: number) => byte === 32 || byte === 10 || byte === 13 || byte === 9
const isDigit = (byte: number) => byte >= 48 && byte <= 57

/**
 * One linear pass over JSON text in UTF-8. Accepts exactly what JSON.parse does, beside its limits. Functions that read a part answer
 * where the text goes on, and leave a problem in the state.
 */
export const scanJson = (bytes: Uint8Array, depthLimit = deepest, mostGained = Number.POSITIVE_INFINITY): Scan => {
  const span = { end: 0, exponent: 0, gained: 0, isTooLong: false, isExact: true }
  const state: State = { problem: null, gained: 0, isEscaped: false, inexact: [], escapedKeys: [], span }
  const isObject: boolean[] = [false]
  const end = bytes.length
  let depth = 0
  let expected = value
  let at = 0
  while (state.problem === null) {
    let byte = at < end ? (bytes[at] as number) : 0
    while (isSpace(byte)) byte = ++at < end ? (bytes[at] as number) : 0
    if (at >= end) {
      if (depth > 0 || expected !== afterValue) state.problem = 'syntax'
      break
    }
    if (expected === afterValue) {
      if (byte === comma && depth > 0) expected = isObject[depth] ? key : value
      else if (byte === (isObject[depth] ? closeObject : closeList) && depth > 0) depth -= 1
      else state.problem = 'syntax'
      at += 1
    } else if (byte === closeObject && expected === keyOrEnd) {
      at += 1
      depth -= 1
      expected = afterValue
    } else if (byte === closeList && expected === valueOrEnd) {
      at += 1
      depth -= 1
      expected = afterValue
    } else if (expected === key || expected === keyOrEnd) {
      at = readKey(bytes, at, byte, state)
      expected = value
    } else if (byte === openList || byte === openObject) {
      at += 1
      depth += 1
      if (depth > depthLimit || depth > deepest) state.problem = 'depth'
      isObject[depth] = byte === openObject
      expected = byte === openObject ? keyOrEnd : valueOrEnd
    } else {
      at = readScalar(bytes, at, byte, state)
      if (state.gained > mostGained) state.problem ??= 'size'
      expected = afterValue
    }
  }
  return state
}

const readKey = (bytes: Uint8Array, start: number, first: number, state: State): number => {
  if (first !== quote) {
    state.problem = 'syntax'
    return start
  }
  let at = readString(bytes, start, state)
  if (state.isEscaped) state.escapedKeys.push(start, at)
  while (at < bytes.length && isSpace(bytes[at] as number)) at += 1
  if (at >= bytes.length || bytes[at] !== colon) state.problem ??= 'syntax'
  return at + 1
}

const readScalar = (bytes: Uint8Array, start: number, first: number, state: State): number => {
  if (first === quote) {
    const at = readString(bytes, start, state)
    const second = bytes[start + 1] as number
    if ((isDigit(second) || second === minus || second === backslash) && state.problem === null)
      countNumberInString(bytes, start + 1, at - 1, state)
    return at
  }
  if (first === minus || isDigit(first)) return readNumberValue(bytes, start, first, state)
  if (first === 116 && bytes[start + 1] === 114 && bytes[start + 2] === 117 && bytes[start + 3] === 101)
    return start + 4
  if (first === 110 && bytes[start + 1] === 117 && bytes[start + 2] === 108 && bytes[start + 3] === 108)
    return start + 4
  if (
    first === 102 &&
    bytes[start + 1] === 97 &&
    bytes[start + 2] === 108 &&
    bytes[start + 3] === 115 &&
    bytes[start + 4] === 101
  )
    return start + 5
  state.problem = 'syntax'
  return start
}

const readNumberValue = (bytes: Uint8Array, start: number, first: number, state: State): number => {
  const { span } = state
  const digits = first === minus ? start + 1 : start
  const end = bytes.length
  let at = digits
  let byte = at < end ? (bytes[at] as number) : 0
  while (isDigit(byte)) byte = ++at < end ? (bytes[at] as number) : 0
  // most numbers are whole and short
  if (at > digits && at - digits < 16 && byte !== dot && byte !== 69 && byte !== 101) {
    if (bytes[digits] === 48 && at > digits + 1) state.problem = 'syntax'
    return at
  }
  // no zero in front of other digits
  if (!readNumber(bytes, start, span) || (bytes[digits] === 48 && at > digits + 1)) state.problem = 'syntax'
  else if (span.isTooLong) state.problem = 'number'
  state.gained += span.gained
  if (!span.isExact) state.inexact.push(start, span.end)
  return span.end
}

/** A numeric column takes numbers as strings as well: those are written out by Postgres too. */
const countNumberInString = (bytes: Uint8Array, start: number, end: number, state: State): void => {
  const { span, isEscaped } = state
  const length = isEscaped ? decodeNumber(bytes, start, end) : 0
  if (length < 0 || !readNumber(isEscaped ? unescaped : bytes, isEscaped ? 0 : start, span)) return
  if (span.end === (isEscaped ? length : end) && Math.abs(span.exponent) <= mostPower) state.gained += span.gained
}

/** Strings with a greater exponent are refused by every column of numbers. */
const mostPower = 999

/** The string that begins with the quote at `start`. */
const readString = (bytes: Uint8Array, start: number, state: State): number => {
  const end = bytes.length
  let at = start + 1
  state.isEscaped = false
  while (at < end) {
    const byte = bytes[at] as number
    if (byte === quote) return at + 1
    if (byte < 32) break
    if (byte !== backslash) at += 1
    else {
      state.isEscaped = true
      at = afterEscape(bytes, at, state)
    }
  }
  state.problem ??= 'syntax'
  return at
}

/** The letters that may follow a backslash, beside u. */
const escapable = new Set(Buffer.from('"\\/bfnrt'))

/** Where the text goes on after an escape. Half of a surrogate pair and U+0000 are problems: then that is the end. */
const afterEscape = (bytes: Uint8Array, at: number, state: State): number => {
  if (bytes[at + 1] !== 117) {
    if (escapable.has(bytes[at + 1] as number)) return at + 2
    state.problem = 'syntax'
    return bytes.length
  }
  const code = hexAt(bytes, at + 2)
  if (code > 0 && (code < 0xd800 || code > 0xdfff)) return at + 6
  const low =
    code >= 0xd800 && code <= 0xdbff && bytes[at + 6] === backslash && bytes[at + 7] === 117 ? hexAt(bytes, at + 8) : 0
  if (low >= 0xdc00 && low <= 0xdfff) return at + 12
  state.problem = code < 0 || low < 0 ? 'syntax' : 'character'
  return bytes.length
}

/** The value of each hexadecimal digit; 255 for any other byte. */
const hexValues = Uint8Array.from({ length: 256 }, (_, byte) => {
  const digit = Number.parseInt(String.fromCharCode(byte), 16)
  return Number.isNaN(digit) ? 255 : digit
})

/** The code unit that four hexadecimal digits spell; -1 for anything else. */
const hexAt = (bytes: Uint8Array, at: number): number => {
  let code = 0
  for (let index = at; index < at + 4; index += 1) {
    const digit = index < bytes.length ? (hexValues[bytes[index] as number] as number) : 255
    if (digit === 255) return -1
    code = code * 16 + digit
  }
  return code
}

/** What a string with escapes spells. One that is longer gains little in proportion. */
const unescaped = new Uint8Array(4096)

/** Writes the number that a string with escapes spells into `unescaped`: its length, or -1 where the string is none. */
const decodeNumber = (bytes: Uint8Array, start: number, end: number): number => {
  let length = 0
  let at = start
  while (at < end) {
    const isEscape = bytes[at] === backslash
    const byte = !isEscape ? (bytes[at] as number) : bytes[at + 1] === 117 ? hexAt(bytes, at + 2) : -1
    const isOfNumber = isDigit(byte) || byte === minus || byte === dot || byte === 43 || byte === 69 || byte === 101
    if (!isOfNumber || length === unescaped.length - 1) return -1
    unescaped[length++] = byte
    at += isEscape ? 6 : 1
  }
  unescaped[length] = 0
  return length
}
