import { type CollectionColumn, isList, isNumeric, titleOfColumn } from './types.ts'
import { parsed } from './values.ts'

export type Condition = { readonly column: string; readonly op: string; readonly value: string }

type Op = { readonly op: string; readonly words: string; readonly needsValue: boolean }
const op = (name: string, words: string, needsValue = true): Op => ({ op: name, words, needsValue })
const same = [op('eq', 'is'), op('ne', 'is not')]
const empty = [op('is_null', 'is empty', false), op('is_not_null', 'has a value', false)]
const ordered = [op('gt', 'more than'), op('gte', 'at least'), op('lt', 'less than'), op('lte', 'at most')]
const times = [op('gte', 'from'), op('lt', 'before')]

/** What can be asked of a column, in words. */
export const opsOf = ({ type, name }: CollectionColumn): readonly Op[] => {
  if (name === 'user_id') return same
  if (type === 'text') return [op('like', 'contains'), ...same, ...empty]
  if (type === 'boolean') return [op('eq', 'is'), ...empty]
  if (isNumeric(type)) return [...same, ...ordered, ...empty]
  if (type === 'date' || type === 'timestamptz') return [...times, ...empty]
  if (isList(type)) return [op('contains', 'contains'), ...empty]
  if (type === 'uuid') return [...same, ...empty]
  return empty
}

/** Conditions as they stand in the address: `level.gte.5,title.like.bach`. */
export const writeConditions = (conditions: readonly Condition[]): string | undefined =>
  conditions.length === 0
    ? undefined
    : conditions.map(({ column, op, value }) => `${column}.${op}.${encodeURIComponent(value)}`).join(',')
export const readConditions = (text: unknown): readonly Condition[] =>
  String(text ?? '')
    .split(',')
    .flatMap((part) => {
      const [, column, op, value] = /^(\w+)\.(\w+)\.(.*)$/.exec(part) ?? []
      return column && op ? [{ column, op, value: decodeURIComponent(value ?? '') }] : []
    })

const pattern = (text: string) => `%${text.replace(/[\\%_]/g, '\\$&')}%`

/** The filter of the API for conditions and a search through the columns of text. Conditions on columns that are gone are left out. */
export const filterOf = (
  columns: readonly CollectionColumn[],
  conditions: readonly Condition[],
  search: string,
  without: readonly string[] = [],
): object | undefined => {
  const all: object[] = conditions.flatMap(({ column: name, op, value }) => {
    const column = columns.find((one) => one.name === name)
    if (!column) return []
    if (op === 'is_null' || op === 'is_not_null') return [{ column: name, op }]
    if (op === 'like') return [{ column: name, op: 'ilike', value: pattern(value) }]
    try {
      const inner = isList(column.type) ? { ...column, type: column.type.slice(0, -2) as 'text' } : column
      const known = parsed({ ...inner, nullable: true }, value)
      return [{ column: name, op, value: isList(column.type) ? [known] : known }]
    } catch {
      return []
    }
  })
  if (search) {
    const texts = columns.filter(({ type }) => type === 'text')
    all.push({ or: texts.map(({ name }) => ({ column: name, op: 'ilike', value: pattern(search) })) })
  }
  if (without.length > 0) all.push({ column: 'id', op: 'not_in', value: without })
  return all.length === 0 ? undefined : { and: all }
}

export const conditionWords = (
  columns: readonly CollectionColumn[],
  { column: name, op, value }: Condition,
): string => {
  const column = columns.find((one) => one.name === name)
  const words = (column && opsOf(column).find((one) => one.op === op)?.words) ?? op
  const shown = column?.type === 'boolean' ? (value === 'true' ? 'yes' : 'no') : value
  return `${titleOfColumn(name)} ${words}${op.startsWith('is_') ? '' : ` ${shown}`}`
}

/** `level.asc` as the order of the API. Without one the newest rows come first. */
export const orderOf = (sort: string | undefined): readonly { column: string; direction: string }[] | undefined => {
  const [column, direction = 'asc'] = (sort ?? '').split('.')
  return column ? [{ column, direction }] : undefined
}
