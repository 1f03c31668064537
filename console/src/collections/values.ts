import { type CollectionColumn, isList, isNumeric } from './types.ts'

/** The first text of a row: what people call it. */
export const rowTitle = (row: Readonly<Record<string, unknown>> | undefined): string => {
  const known = Object.entries(row ?? {}).find(
    ([name, value]) => typeof value === 'string' && !/(^|_)(id|at)$/.test(name) && value !== '',
  )
  return known ? String(known[1]) : 'the row'
}

/** A value as the grid shows it in one line. */
export const shownText = ({ type }: Pick<CollectionColumn, 'type'>, value: unknown): string => {
  if (value === null || value === undefined) return ''
  if (type === 'boolean') return value ? 'yes' : 'no'
  if (type === 'vector') return `${(value as readonly unknown[]).length} numbers`
  if (type === 'date')
    return new Date(`${value}T12:00:00`).toLocaleDateString('en', { day: 'numeric', month: 'short', year: 'numeric' })
  if (Array.isArray(value)) return value.map((inner) => plain(inner)).join(', ')
  if (typeof value === 'object')
    return Object.entries(value)
      .map(([name, inner]) => `${name}: ${plain(inner)}`)
      .join(', ')
  return String(value)
}
const plain = (value: unknown): string =>
  value === null
    ? '—'
    : typeof value === 'object'
      ? Array.isArray(value)
        ? `${value.length} values`
        : '…'
      : String(value)

/** A time for a control of the browser, in the zone of the person. */
const localTime = (at: string) => {
  const date = new Date(at)
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** A value as it is edited in a cell. */
export const editedText = ({ type }: CollectionColumn, value: unknown): string => {
  if (value === null || value === undefined) return ''
  if (type === 'timestamptz') return localTime(String(value))
  return String(value)
}

/** These are edited in the panel of their row: no single line holds them. */
export const isWide = ({ type, references }: CollectionColumn): boolean =>
  isList(type) || type === 'jsonb' || type === 'vector' || references !== null

/** What a cell's text means for the server; throws what is wrong in words. An emptied cell has no value. */
export const parsed = ({ type, name, nullable }: CollectionColumn, text: string): unknown => {
  if (text === '' && (nullable || type !== 'text')) {
    if (!nullable) throw new Error(`${name} needs a value.`)
    return null
  }
  if (type === 'integer' || type === 'bigint') {
    if (!/^-?\d+$/.test(text.trim())) throw new Error(`${name} takes a whole number, as 12.`)
    return Number.isSafeInteger(Number(text)) ? Number(text) : text.trim()
  }
  if (isNumeric(type)) {
    const number = text.trim().replace(',', '.')
    if (!/^-?\d*\.?\d+(e[+-]?\d+)?$/i.test(number)) throw new Error(`${name} takes a number, as 12.5.`)
    return String(Number(number)) === number || type === 'double' ? Number(number) : number
  }
  if (type === 'boolean') return text === 'true' || text === 'yes'
  if (type === 'timestamptz') return new Date(text).toISOString()
  return text
}

/** The width that a column begins with. */
export const widthOf = ({ name, type, max_length }: CollectionColumn): number => {
  if (name === 'user_id') return 170
  if (type === 'boolean') return 110
  if (isNumeric(type)) return Math.max(110, name.length * 8 + 60)
  if (type === 'date' || type === 'timestamptz') return 140
  if (type === 'uuid') return 140
  if (type === 'text') return (max_length ?? 1000) <= 30 ? 140 : 200
  return 200
}
