import {
  ActionIcon,
  Button,
  Collapse,
  Group,
  NumberInput,
  Select,
  Stack,
  Switch,
  TagsInput,
  Text,
  TextInput,
} from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Settings2, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { callAny, type Row, TrellisError } from '../api.ts'
import { Drawer } from '../parts/drawer.tsx'
import { useProject } from '../parts/page.tsx'
import { done, Failure, useRefresh } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import {
  type Collection,
  type CollectionColumn,
  type ColumnType,
  isNumeric,
  one,
  typeData,
  useCollections,
} from './data.ts'

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

const functions: Readonly<Record<string, string>> = { now: 'The moment it is added', user_id: 'Its owner' }

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
const changeBody = (before: Draft, after: Draft): Row => {
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

const columnName = (text: string) => text.toLowerCase().replace(/[^a-z0-9_]+/g, '_')

type PartProps = {
  readonly draft: Draft
  readonly onChange: (draft: Draft) => void
  readonly label?: string
}

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
const PresetInput = ({ draft, onChange, label }: PartProps) => {
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
const Bounds = ({ draft, onChange }: PartProps) => {
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

/** A column of a new collection, as one line; what is rare opens below it. */
export const DraftLine = ({
  draft,
  onChange,
  onRemove,
  at,
}: {
  draft: Draft
  onChange: (draft: Draft) => void
  onRemove: () => void
  at: number
}) => {
  const [isOpen, setOpen] = useState(false)
  return (
    <div className="draft">
      <div className="draft-line">
        <NameInput draft={draft} onChange={onChange} label={`Name of column ${at}`} />
        <TypeSelect draft={draft} onChange={onChange} label={`What column ${at} holds`} />
        <Switch
          label="Needed"
          checked={draft.isNeeded}
          onChange={(event) => onChange({ ...draft, isNeeded: event.currentTarget.checked })}
        />
        <Group gap={2} wrap="nowrap">
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={`More about column ${at}`}
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
          >
            <Settings2 size={16} />
          </ActionIcon>
          <ActionIcon variant="subtle" color="gray" aria-label={`Remove column ${at}`} onClick={onRemove}>
            <Trash2 size={16} />
          </ActionIcon>
        </Group>
      </div>
      <Collapse expanded={isOpen}>
        <Stack gap="sm" py="sm">
          <PresetInput draft={draft} onChange={onChange} />
          <Bounds draft={draft} onChange={onChange} />
        </Stack>
      </Collapse>
    </div>
  )
}

const Form = ({
  collection,
  column,
  onClose,
}: {
  collection: Collection
  column: CollectionColumn | undefined
  onClose: () => void
}) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [before] = useState<Draft>(() => (column ? draftOf(column) : emptyDraft))
  const [draft, setDraft] = useState<Draft>(before)
  const isNew = column === undefined
  const body = isNew ? columnBody(draft) : changeBody(before, draft)
  const work = useMutation({
    mutationFn: () =>
      callAny(isNew ? `POST ${one}/columns` : `PATCH ${one}/columns/{column}`, {
        path: { ...path, name: collection.name, ...(column ? { column: column.name } : {}) },
        body,
      }),
    onSuccess: async () => {
      done(
        isNew ? `The column “${draft.name}” is added.` : `The column “${draft.name}” is changed.`,
        isNew
          ? () =>
              callAny(`DELETE ${one}/columns/{column}`, {
                path: { ...path, name: collection.name, column: draft.name },
                query: { confirm: draft.name },
              }).then(refresh)
          : undefined,
      )
      onClose()
      await refresh()
    },
  })
  useUnsaved(draft, work)
  const refusal = work.error instanceof TrellisError ? work.error : undefined
  const sample = refusal?.details?.['failing_rows']
  const isLocked = !isNew
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        if (draft.name) work.mutate()
      }}
    >
      <Stack gap="md">
        <div className="pair">
          <NameInput draft={draft} onChange={setDraft} />
          <TypeSelect draft={draft} onChange={setDraft} />
        </div>
        {isLocked && (
          <Text size="sm" c="dimmed">
            Values stay as they are. A type changes where nothing is lost: a number to a larger one, a date to a time,
            anything to text.
          </Text>
        )}
        <Switch
          label="Every row needs a value"
          description={isNew ? 'Existing rows get the value below' : undefined}
          checked={draft.isNeeded}
          onChange={(event) => setDraft({ ...draft, isNeeded: event.currentTarget.checked })}
        />
        <PresetInput draft={draft} onChange={setDraft} />
        <Bounds draft={draft} onChange={setDraft} />
      </Stack>
      <div className="savebar">
        {work.error && (
          <div className="grow">
            <Failure error={work.error} />
            {typeof sample === 'number' && <Text size="sm">{sample} rows stand against it.</Text>}
          </div>
        )}
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <Button
          type="submit"
          loading={work.isPending}
          disabled={draft.name === '' || (!isNew && Object.keys(body).length === 0)}
        >
          {isNew ? 'Add column' : 'Save column'}
        </Button>
      </div>
    </form>
  )
}

/** Adds a column, or changes one, in a drawer. */
export const ColumnDrawer = ({
  collection,
  name,
  onClose,
}: {
  collection: Collection
  /** The name of a column, `+` for a new one, or nothing while it is closed. */
  name: string | undefined
  onClose: () => void
}) => {
  const column = collection.columns.find((one) => one.name === name)
  return (
    <Drawer
      opened={name !== undefined}
      onClose={onClose}
      title={column ? `Column ${column.name}` : `New column of ${collection.name}`}
    >
      {name !== undefined && <Form key={name} collection={collection} column={column} onClose={onClose} />}
    </Drawer>
  )
}
