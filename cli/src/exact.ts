/**
 * Numbers that JavaScript would change, such as 12345678901234567890 and 1.10, pass through the program as text: a pull and a push must not
 * alter a definition. The mark cannot be in a definition: Postgres stores no NUL.
 */
const mark = '\\u0000number:'
const tokens = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** JSON text whose inexact numbers are marked strings. */
export const protect = (text: string): string =>
  text.replace(tokens, (token) =>
    token.startsWith('"') || String(Number(token)) === token ? token : `"${mark}${token}"`,
  )

/** JSON text with the numbers again. */
export const restore = (text: string): string => text.replace(/"\\u0000number:(-?\d[\d.eE+-]*)"/g, '$1')
