import type { CollectionColumn } from '../../../sdk/src/generated/schemas.ts'

export type { CollectionColumn }
export type ColumnType = CollectionColumn['type']

export const isNumeric = (type: ColumnType): boolean => ['integer', 'bigint', 'numeric', 'double'].includes(type)
export const isList = (type: ColumnType): boolean => type.endsWith('[]')

export const isSystem = ({ name }: CollectionColumn): boolean => systemTitles[name] !== undefined
const systemTitles: Readonly<Record<string, string>> = {
  user_id: 'Owner',
  group_id: 'Group',
  created_at: 'Created',
  updated_at: 'Changed',
  id: 'Id',
}
export const titleOfColumn = (name: string): string => systemTitles[name] ?? name
