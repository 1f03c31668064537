import type { Result } from './data.ts'

const field = (value: unknown): string => {
  const text = value === null ? '' : String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Rows as CSV (RFC 4180) with a head; null is an empty field. */
export const csvOf = ({ columns, rows }: Result): string =>
  [columns.map(({ name }) => name), ...rows].map((row) => row.map(field).join(',')).join('\r\n')

/** Names of columns, each one once: `id`, `id_2`. */
const keysOf = (names: readonly string[]): readonly string[] => {
  const taken = new Set<string>()
  return names.map((name) => {
    let key = name
    for (let at = 2; taken.has(key); at += 1) key = `${name}_${at}`
    taken.add(key)
    return key
  })
}

/** Rows as JSON, an object each. */
export const jsonOf = ({ columns, rows }: Result): string => {
  const keys = keysOf(columns.map(({ name }) => name))
  return JSON.stringify(
    rows.map((row) => Object.fromEntries(row.map((value, at) => [keys[at], value]))),
    null,
    2,
  )
}
