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

/**
 * JSON with every number as it was written: what a double cannot hold stays text, and JSON.stringify writes it as it came. `parsed`
 * is the same text as JSON.parse gave it, which is good enough for nearly all.
 */
export const exactJson = (text: string, parsed: unknown): unknown =>
  careful.test(text)
    ? json.parse(text, (_key, value, { source }) =>
        typeof value === 'number' && source !== undefined && !Number.isSafeInteger(value) && String(value) !== source
          ? json.rawJSON(source)
          : value,
      )
    : parsed

/** Whether a value is a number that JavaScript cannot hold. */
export const isExactNumber = (value: unknown): boolean => json.isRawJSON(value)
