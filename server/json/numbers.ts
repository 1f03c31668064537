/**
 * What reading a number found: where it ends, its exponent, the bytes that Postgres adds when it writes the number out, whether
 * these are more digits than may be, and whether a double represents it exactly.
 */
export type NumberSpan = { end: number; exponent: number; gained: number; isTooLong: boolean; isExact: boolean }

/** Digits before the point, and after it, that a number may have written out. Holds every double, and every power that three digits write. */
export const mostDigits = 1000

/** Decimal digits that any double keeps. */
const exactDigits = 15
/** Powers of ten between which a double keeps them. */
const exactPower = 290

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= 48 && byte <= 57

/**
 * Reads the number at `start` into `span`; false when there is none.
 * Zeros in front are taken, as Postgres takes them from strings: JSON's own rule is the caller's to check.
 */
export const readNumber = (bytes: Uint8Array, start: number, span: NumberSpan): boolean => {
  const first = bytes[start] === 45 ? start + 1 : start
  let at = first
  while (isDigit(bytes[at])) at += 1
  const point = at
  if (point === first) return false
  if (bytes[at] === 46) {
    at += 1
    while (isDigit(bytes[at])) at += 1
    if (at === point + 1) return false
  }
  const last = at
  let exponent = 0
  if (bytes[at] === 101 || bytes[at] === 69) {
    at += 1
    const isNegative = bytes[at] === 45
    if (isNegative || bytes[at] === 43) at += 1
    const from = at
    for (; isDigit(bytes[at]); at += 1) exponent = Math.min(exponent * 10 + ((bytes[at] as number) - 48), 1_000_000)
    if (at === from) return false
    if (isNegative) exponent = -exponent
  }
  span.end = at
  span.exponent = exponent
  span.gained = 0
  span.isTooLong = false
  span.isExact = true
  if (at - start > exactDigits || last !== at) measure(bytes, first, point, last, at - start, span)
  return true
}

/** The digits are from `first` to `last`, with the point, if there is one, at `point`. */
const measure = (
  bytes: Uint8Array,
  first: number,
  point: number,
  last: number,
  length: number,
  span: NumberSpan,
): void => {
  const { exponent } = span
  const decimals = Math.max(0, last - point - 1)
  let from = first
  while (from < last && !(isDigit(bytes[from]) && bytes[from] !== 48)) from += 1
  let to = last
  while (to > from && !(isDigit(bytes[to - 1]) && bytes[to - 1] !== 48)) to -= 1
  const isZero = from === last
  // how many digits precede the point once the exponent has moved it: zero or less for a fraction
  const whole = (from < point ? point - from : point + 1 - from) + exponent
  const scale = Math.max(0, decimals - exponent)
  const before = isZero ? 1 : Math.max(1, whole)
  span.isTooLong = before > mostDigits || scale > mostDigits || Math.abs(exponent) > 9999
  const isNegative = bytes[first - 1] === 45 && !isZero
  const written = (isNegative ? 1 : 0) + before + (scale > 0 ? scale + 1 : 0)
  span.gained = Math.max(0, written - length)
  const significant = to - from - (from < point && point < to ? 1 : 0)
  span.isExact = isZero || (significant <= exactDigits && Math.abs(whole) <= exactPower)
}
