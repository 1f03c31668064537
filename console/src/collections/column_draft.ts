import type { Row } from '../api.ts'
import { type CollectionColumn, type ColumnType, isNumeric } from './data.ts'

/** A column as it is written down, before or after it exists. */
export type Draft = {
  readonly name: string
  readonly type: ColumnType
  readonly isNeeded: boolean
  readonly isUnique: boolean
  readonly preset: string
  readonly longest: number | undefined
  readonly least: number | undefined
  readonly most: number | undefined
  readonly choices: readonly string[]
  readonly reference: string | undefined
  readonly onDelete: string
  readonly dimensions: number | undefined
}

export const emptyDraft: Draft = {
  name: '',
  type: 'text',
  isNeeded: false,
  isUnique: false,
  preset: '',
  longest: undefined,
  least: undefined,
  most: undefined,
  choices: [],
  reference: undefined,
  onDelete: 'set_null',
  dimensions: 1536,
}

/** An existing column as it was written down. */
export const draftOf = (column: CollectionColumn): Draft => ({
  name: column.name,
  type: column.type,
  isNeeded: !column.nullable,
  isUnique: column.unique,
  preset:
    column.default === null || column.default === undefined
      ? ''
      : typeof column.default === 'object'
        ? `$${(column.default as Row)['$fn'] ?? ''}`
        : String(column.default),
  longest: column.max_length ?? undefined,
  least: column.min === null ? undefined : Number(column.min),
  most: column.max === null ? undefined : Number(column.max),
  choices: (column.enum ?? []).map(String),
  reference: column.references?.collection,
  onDelete: column.references?.on_delete ?? 'set_null',
  dimensions: column.dimensions ?? undefined,
})

const presetOf = ({ type, preset }: Draft): unknown => {
  if (preset === '') return undefined
  if (preset.startsWith('$')) return { $fn: preset.slice(1) }
  if (type === 'boolean') return preset === 'true'
  return isNumeric(type) && !Number.isNaN(Number(preset)) ? Number(preset) : preset
}

/** The column as the API takes it. */
export const columnBody = (draft: Draft): Row => {
  const { name, type, isNeeded, isUnique, longest, least, most, choices, reference, onDelete, dimensions } = draft
  const preset = presetOf(draft)
  const isNumber = isNumeric(type)
  return {
    name,
    type,
    ...(isNeeded ? { nullable: false } : {}),
    ...(preset === undefined ? {} : { default: preset }),
    ...(isUnique ? { unique: true } : {}),
    ...(type === 'text' && longest !== undefined ? { max_length: longest } : {}),
    ...(isNumber && least !== undefined ? { min: least } : {}),
    ...(isNumber && most !== undefined ? { max: most } : {}),
    ...((type === 'text' || isNumber) && choices.length > 0 ? { enum: isNumber ? choices.map(Number) : choices } : {}),
    ...(type === 'uuid' && reference ? { references: { collection: reference, on_delete: onDelete } } : {}),
    ...(type === 'vector' ? { dimensions } : {}),
  }
}

/** What a change sends: whatever differs, and null for what was taken away. */
export const changeBody = (before: Draft, after: Draft): Row => {
  const [was, is] = [columnBody(before), columnBody(after)]
  const fields = ['name', 'type', 'nullable', 'default', 'max_length', 'min', 'max', 'enum']
  return Object.fromEntries(
    fields.flatMap((name) =>
      JSON.stringify(was[name]) === JSON.stringify(is[name])
        ? []
        : [[name, is[name] ?? (name === 'nullable' ? true : null)]],
    ),
  )
}
