export type Column = {
  readonly name: string
  readonly type: string
  readonly nullable: boolean
  readonly enum?: readonly unknown[] | null
}

/** A value of a row as one reads and edits it: text as it is, everything else as JSON, nothing for null. */
export const textOfCell = (value: unknown): string =>
  value === null || value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value)

const textual = new Set(['text', 'uuid', 'date', 'timestamptz', 'bigint', 'numeric'])

/**
 * What a cell that was edited to `text` sends: null for an empty one that may be null, the text itself where the column holds text or digits, else JSON. Throws a SyntaxError
 * for what is no JSON.
 */
export const valueOfCell = ({ type, nullable }: Column, text: string): unknown => {
  if (text === '' && nullable) return null
  return textual.has(type) ? text : JSON.parse(text)
}
