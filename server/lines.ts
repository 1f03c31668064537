// control characters, line and paragraph separators, bidirectional embeddings, overrides and isolates: those of internal.is_line in sql/shared/55_lines.sql
const unlined = /[\p{Cc}\u2028-\u202e\u2066-\u2069]/u
const runs = new RegExp(`${unlined.source}+`, 'gu')

/** Whether a text is one line, as a name, a title or a subject has to be. */
export const isLine = (text: string): boolean => !unlined.test(text)

/** A text on one line: a space in place of what a line may not have. */
export const asLine = (text: string): string => text.replace(runs, ' ').trim()
