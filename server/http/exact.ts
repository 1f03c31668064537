type Raw = { readonly rawJSON: string }
type WithRaw = {
  rawJSON(text: string): Raw
  isRawJSON(value: unknown): value is Raw
}
const json = JSON as unknown as WithRaw & {
  parse(text: string, revive: (key: string, value: unknown, context: { source?: string }) => unknown): unknown
}

/** A number of so many digits, or with an exponent, that JavaScript may not hold it as it was written; a key that checks of form drop. */
const careful = /[:,[\s]-?(?:[0-9.]{16}|[0-9.]+[eE])|__proto__/

/** A number's digits without the zeros that say nothing, and where its point stands: 2.50e1 and 25 are one. */
const digitsOf = (number: string): string => {
  const [, sign, whole = '', part = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(number) ?? []
  const digits = `${whole}${part}`.replace(/^0+/, '')
  // no pattern: one that looks for zeros at the end begins anew at each of half a million in the middle
  let end = digits.length
  while (end > 0 && digits[end - 1] === '0') end -= 1
  return end === 0 ? '0' : `${sign}${digits.slice(0, end)}e${Number(exponent) - part.length + digits.length - end}`
}

/** A whole number is passed on as one, however it was written; but it may be what JavaScript made of a longer one. */
const isKept = (value: number, source: string): boolean =>
  String(value) === source || (Number.isSafeInteger(value) && digitsOf(source) === digitsOf(String(value)))

/**
 * JSON with every number as it was written: what a double cannot hold stays text, and JSON.stringify writes it as it came. `parsed`
 * is the same text as JSON.parse gave it, which is good enough for nearly all.
 */
export const exactJson = (text: string, parsed: unknown): unknown =>
  careful.test(text)
    ? json.parse(text, (_key, value, { source }) =>
        typeof value === 'number' && source !== undefined && !isKept(value, source) ? json.rawJSON(source) : value,
      )
    : parsed

/** Whether a value is a number that JavaScript cannot hold. */
export const isExactNumber = (value: unknown): boolean => json.isRawJSON(value)
