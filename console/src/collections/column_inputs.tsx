import { NumberInput, Select, Switch, TagsInput, TextInput } from '@mantine/core'
import type { Draft } from './column_draft.ts'
import { type ColumnType, isNumeric, typeData, useCollections } from './data.ts'

const functions: Readonly<Record<string, string>> = { now: 'The moment it is added', user_id: 'Its owner' }

const columnName = (text: string) => text.toLowerCase().replace(/[^a-z0-9_]+/g, '_')

type PartProps = {
  readonly draft: Draft
  readonly onChange: (draft: Draft) => void
  readonly label?: string
}

/** The name of a column, in the signs that a name may have. */
export const NameInput = ({ draft, onChange, label, error }: PartProps & { error?: string | undefined }) => (
  <TextInput
    {...(label ? { 'aria-label': label } : { label: 'Name', required: true, 'data-autofocus': true })}
    placeholder="such as difficulty"
    value={draft.name}
    error={error}
    onChange={(event) => onChange({ ...draft, name: columnName(event.currentTarget.value) })}
    maxLength={63}
    autoComplete="off"
  />
)

/** What a column holds. */
export const TypeSelect = ({ draft, onChange, label }: PartProps) => (
  <Select
    {...(label ? { 'aria-label': label } : { label: 'What it holds' })}
    data={typeData}
    allowDeselect={false}
    value={draft.type}
    onChange={(type) => onChange({ ...draft, type: (type ?? 'text') as ColumnType, preset: '' })}
    maxDropdownHeight={320}
  />
)

/** What a new row has where an app names no value. */
export const PresetInput = ({ draft, onChange, label }: PartProps) => {
  const { type, preset } = draft
  const naming = label
    ? { 'aria-label': label }
    : { label: 'Value of a new row', description: 'Where an app names none' }
  const set = (next: string | null) => onChange({ ...draft, preset: next ?? '' })
  if (['jsonb', 'vector'].includes(type) || type.endsWith('[]')) return null
  const choices =
    type === 'boolean'
      ? [
          { value: 'true', label: 'yes' },
          { value: 'false', label: 'no' },
        ]
      : type === 'timestamptz' || type === 'date'
        ? [{ value: '$now', label: functions['now'] ?? '' }]
        : type === 'uuid'
          ? [{ value: '$user_id', label: functions['user_id'] ?? '' }]
          : undefined
  return choices ? (
    <Select {...naming} placeholder="nothing" clearable data={choices} value={preset || null} onChange={set} />
  ) : (
    <TextInput
      {...naming}
      placeholder="nothing"
      value={preset}
      onChange={(event) => set(event.currentTarget.value)}
      autoComplete="off"
    />
  )
}

/** What only some columns have: bounds, choices, references. */
export const Bounds = ({ draft, onChange }: PartProps) => {
  const { data: collections } = useCollections()
  const { type } = draft
  const number = (name: 'longest' | 'least' | 'most' | 'dimensions', label: string) => (
    <NumberInput
      label={label}
      value={draft[name] ?? ''}
      onChange={(next) => onChange({ ...draft, [name]: next === '' ? undefined : Number(next) })}
    />
  )
  return (
    <div className="pair">
      {type === 'text' && number('longest', 'Longest text')}
      {isNumeric(type) && number('least', 'Least')}
      {isNumeric(type) && number('most', 'Most')}
      {type === 'vector' && number('dimensions', 'Dimensions')}
      {(type === 'text' || isNumeric(type)) && (
        <div className="wide">
          <TagsInput
            label="Only these values"
            description="Nothing else is taken; rows then offer them as a choice"
            placeholder={draft.choices.length > 0 ? '' : 'Type one and press Enter'}
            value={[...draft.choices]}
            onChange={(choices) => onChange({ ...draft, choices })}
          />
        </div>
      )}
      {type === 'uuid' && (
        <Select
          label="Refers to a row of"
          placeholder="nothing"
          clearable
          data={(collections ?? []).map(({ name }) => name)}
          value={draft.reference ?? null}
          onChange={(reference) => onChange({ ...draft, reference: reference ?? undefined })}
        />
      )}
      {type === 'uuid' && draft.reference && (
        <Select
          label="When that row is deleted"
          allowDeselect={false}
          data={[
            { value: 'set_null', label: 'this value is emptied' },
            { value: 'cascade', label: 'this row is deleted, too' },
            { value: 'restrict', label: 'it cannot be deleted' },
          ]}
          value={draft.onDelete}
          onChange={(onDelete) => onChange({ ...draft, onDelete: onDelete ?? 'set_null' })}
        />
      )}
      {!['jsonb', 'vector'].includes(type) && !type.endsWith('[]') && (
        <Switch
          label="No two rows have the same value"
          checked={draft.isUnique}
          onChange={(event) => onChange({ ...draft, isUnique: event.currentTarget.checked })}
          mt={4}
        />
      )}
    </div>
  )
}
