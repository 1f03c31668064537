/** What a body of JSON came to. */
export type ParsedJson =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'broken'; readonly reason: string }

const deepest = 200

/**
 * Parses JSON that Postgres can hold as well: no U+0000, no half of a surrogate pair, no nesting that a recursive reader
 * would fall over, no few letters of a number that it would write out with a hundred thousand digits. Better to refuse
 * such a body by name than to find out in a statement.
 */
export const parseJson = (text: string): ParsedJson => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { kind: 'broken', reason: 'The body is not valid JSON.' }
  }
  if (isTooDeep(text)) return { kind: 'broken', reason: `The body nests more than ${deepest} deep.` }
  if (/\\u/i.test(text) && hasUnstorable(value)) {
    return {
      kind: 'broken',
      reason: 'The body has a character that cannot be stored: U+0000 or half of a surrogate pair.',
    }
  }
  if (hugeExponent.test(text) && hugeExponent.test(text.replace(strings, '""'))) {
    return { kind: 'broken', reason: 'The body has a number with an exponent of more than three digits.' }
  }
  return { kind: 'value', value }
}

const hugeExponent = /[0-9.][eE][+-]?0*[1-9][0-9]{3}/
const strings = /"(?:[^"\\]|\\.)*"/g

const isTooDeep = (text: string): boolean => {
  let depth = 0
  let inString = false
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (inString) {
      if (code === 92) index += 1
      else if (code === 34) inString = false
    } else if (code === 34) inString = true
    else if (code === 123 || code === 91) {
      depth += 1
      if (depth > deepest) return true
    } else if (code === 125 || code === 93) depth -= 1
  }
  return false
}

const isStorable = (text: string) => !text.includes('\0') && text.isWellFormed()

const hasUnstorable = (value: unknown): boolean => {
  if (typeof value === 'string') return !isStorable(value)
  if (Array.isArray(value)) return value.some(hasUnstorable)
  if (typeof value === 'object' && value !== null) {
    return Object.entries(value).some(([key, item]) => !isStorable(key) || hasUnstorable(item))
  }
  return false
}
