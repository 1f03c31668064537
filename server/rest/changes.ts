import { z } from 'zod'
import { invalid } from '#server/rest/auth_shapes.ts'

/** What of the changes of collections a channel of realtime-js listens to. */
export type Change = {
  readonly id: number
  readonly sent: Binding
  readonly table: string
  readonly fits: (type: string, row: Row) => boolean
}

type Row = Readonly<Record<string, unknown>>

export const Binding = z.object({
  event: z.enum(['*', 'INSERT', 'UPDATE', 'DELETE']),
  schema: z.string().max(63),
  table: z.string().max(63).optional(),
  filter: z.string().max(1000).optional(),
})
export type Binding = z.infer<typeof Binding>

type Test = (value: unknown) => boolean

const numberOf = (text: string) => (text.trim() === '' ? Number.NaN : Number(text))

/** Numbers as numbers, everything else as its text: times in ISO 8601 are in order then too. */
const compare = (value: unknown, text: string): number | null => {
  if (value === null || value === undefined) return null
  if (typeof value === 'number') {
    const other = numberOf(text)
    return Number.isNaN(other) ? null : value - other
  }
  const own = typeof value === 'string' ? value : JSON.stringify(value)
  return own < text ? -1 : own > text ? 1 : 0
}

const plain = (text: string) => (/^".*"$/s.test(text) ? text.slice(1, -1).replace(/\\(.)/gs, '$1') : text)
const itemsOf = (text: string) => text.match(/"(?:\\.|[^"\\])*"|[^,]+/gs)?.map(plain) ?? []

const ordered =
  (fits: (order: number) => boolean) =>
  (text: string): Test =>
  (value) => {
    const order = compare(value, plain(text))
    return order !== null && fits(order)
  }

const isTexts: Readonly<Record<string, unknown>> = { null: null, true: true, false: false }

const operators: Readonly<Record<string, (text: string) => Test | null>> = {
  eq: ordered((order) => order === 0),
  neq: ordered((order) => order !== 0),
  lt: ordered((order) => order < 0),
  lte: ordered((order) => order <= 0),
  gt: ordered((order) => order > 0),
  gte: ordered((order) => order >= 0),
  in: (text) => {
    const [, list] = /^\((.+)\)$/s.exec(text) ?? []
    if (list === undefined) return null
    const items = itemsOf(list)
    return (value) => items.some((item) => compare(value, item) === 0)
  },
  is: (text) => (Object.hasOwn(isTexts, text) ? (value) => (value ?? null) === isTexts[text] : null),
}

/** `column=operator.value`, with `not.` before the operator or without. */
const filterOf = (text: string): ((row: Row) => boolean) => {
  const [, column = '', not, operator = '', value = ''] = /^([^=,]+)=(not\.)?([a-z]+)\.(.*)$/s.exec(text) ?? []
  const test = Object.hasOwn(operators, operator) ? operators[operator]?.(value) : null
  if (!test || (operator !== 'in' && /[,"]/.test(value) && plain(value) === value))
    throw invalid('filter', `must be column=operator.value with one of ${Object.keys(operators).join(', ')}`)
  return (row) => test(row[column]) !== Boolean(not)
}

/** Of a deleted row only the id is told: a filter on anything else lets it pass. */
export const changeOf = (sent: Binding, id: number): Change => {
  if (!['public', '*'].includes(sent.schema)) throw invalid('schema', 'must be public: collections alone are served')
  if (!sent.table || sent.table === '*') throw invalid('table', 'must name a collection')
  const filter = sent.filter ? filterOf(sent.filter) : null
  const isOfId = sent.filter?.startsWith('id=') ?? false
  return {
    id,
    sent,
    table: sent.table,
    fits: (type, row) =>
      (sent.event === '*' || sent.event === type) && (!filter || (type === 'DELETE' && !isOfId) || filter(row)),
  }
}

type Told = { readonly id: string } | { readonly row: Row }

/** The message of realtime-js for a change of a row, which is as the REST access shows it. */
export const shownChange = (changes: readonly Change[], table: string, event: string, told: Told, at: string) => {
  const type = event.toUpperCase()
  const { deleted_at: _, ...row } = 'row' in told ? told.row : (told as Row)
  const ids = changes.filter((one) => one.table === table && one.fits(type, row)).map(({ id }) => id)
  if (ids.length === 0) return null
  const old = type === 'INSERT' ? {} : { old_record: { id: row['id'] } }
  return {
    ids,
    data: {
      schema: 'public',
      table,
      type,
      commit_timestamp: at,
      // values are JSON already: without a type realtime-js leaves them as they are
      columns: [],
      ...(type === 'DELETE' ? {} : { record: row }),
      ...old,
      errors: null,
    },
  }
}
