import type { Row } from '../api.ts'

/** A file as the server takes it. */
export type Prepared = {
  readonly text: string
  readonly format: 'csv' | 'ndjson'
  readonly lines: number
  readonly hasOwner: boolean
}

/** The ends of the records of a CSV file: a line break inside quotes is none. */
const recordsOf = (text: string): readonly string[] => {
  const records: string[] = []
  let [from, isQuoted] = [0, false]
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '"') isQuoted = !isQuoted
    else if (text[at] === '\n' && !isQuoted) {
      records.push(text.slice(from, at).replace(/\r$/, ''))
      from = at + 1
    }
  }
  if (from < text.length) records.push(text.slice(from))
  return records.filter((record) => record !== '')
}

/** Reads a file of CSV, JSON lines or a JSON list, and gives every row an owner where it has none. */
export const prepared = (name: string, text: string, owner: string | undefined, key = 'user_id'): Prepared => {
  const isJson = /^\s*[[{]/.test(text)
  if (isJson) {
    const rows = (
      text.trim().startsWith('[')
        ? JSON.parse(text)
        : text
            .split('\n')
            .filter((line) => line.trim() !== '')
            .map((line) => JSON.parse(line))
    ) as Row[]
    const hasOwner = rows.every((row) => row[key])
    const owned = rows.map((row) => (owner && !row[key] ? { ...row, [key]: owner } : row))
    return { text: owned.map((row) => JSON.stringify(row)).join('\n'), format: 'ndjson', lines: rows.length, hasOwner }
  }
  const [head, ...records] = recordsOf(text)
  if (!head) throw new Error(`${name} is empty.`)
  const hasOwner = head.split(',').some((cell) => cell.replace(/"/g, '').trim() === key)
  if (hasOwner || !owner) return { text, format: 'csv', lines: records.length, hasOwner }
  const owned = [`${head},${key}`, ...records.map((record) => `${record},${owner}`)]
  return { text: owned.join('\n'), format: 'csv', lines: records.length, hasOwner }
}
