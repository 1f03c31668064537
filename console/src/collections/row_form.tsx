import { Stack, Text, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { adminCreateRow, adminUpdateRow } from '../../../sdk/src/generated/admin.ts'
import { call, type Row, TrellisError } from '../api.ts'
import type { Editor, EditorOf, Values } from '../parts/form/field.ts'
import { Fields } from '../parts/form/fields.tsx'
import { bodyOf, type Document, type Schema } from '../parts/form/schema.ts'
import { FormFoot } from '../parts/form_foot.tsx'
import { Facts, useProject } from '../parts/page.tsx'
import { done, useRefresh, When } from '../parts/states.tsx'
import { Id } from '../parts/status.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { UserName } from '../parts/users.tsx'
import { type Collection, type CollectionColumn, isList, typeWords } from './data.ts'
import { GroupSelect } from './group_select.tsx'
import { UserSelect } from './names.tsx'
import { RowSelect } from './row_select.tsx'
import { putRow } from './use_rows.ts'
import { rowTitle } from './values.ts'

const nothing: Document = { paths: {}, components: { schemas: {} } }

const schemaOf = (column: CollectionColumn): Schema => {
  const { type, nullable, max_length, references } = column
  const kind =
    type === 'boolean'
      ? 'boolean'
      : type === 'integer'
        ? 'integer'
        : type === 'numeric' || type === 'double' || type === 'bigint'
          ? 'number'
          : 'string'
  const base: Schema = {
    title: column.name,
    description: typeWords[type],
    ...(column.min === null ? {} : { minimum: Number(column.min) }),
    ...(column.max === null ? {} : { maximum: Number(column.max) }),
  }
  if (references) return { ...base, type: ['string', 'null'], named: `row of ${references.collection}` }
  if (type === 'date') return { ...base, type: ['string', 'null'], named: 'date' }
  if (isList(type)) {
    const inner = schemaOf({ ...column, type: type.slice(0, -2) as 'text', nullable: false })
    return { ...base, type: ['array', 'null'], items: { type: inner.type ?? 'string' } }
  }
  if (type === 'jsonb' || type === 'vector') return base
  return {
    ...base,
    type: nullable ? [kind, 'null'] : kind,
    ...(column.enum ? { enum: column.enum } : {}),
    ...(max_length ? { maxLength: max_length } : type === 'text' ? { maxLength: 5000 } : {}),
    ...(type === 'timestamptz' ? { format: 'date-time' } : {}),
  }
}

/** The fields of a row, by the types of its columns. */
export const RowForm = ({
  collection,
  row,
  onClose,
}: {
  collection: Collection
  row: Row | undefined
  onClose: () => void
}) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const { name } = collection
  const [owner, setOwner] = useState<string>()
  const [group, setGroup] = useState<string>()
  const isGroup = collection.owner_scope === 'group'
  const properties = Object.fromEntries(collection.columns.map((column) => [column.name, schemaOf(column)]))
  const required = row
    ? []
    : collection.columns.filter(({ nullable, default: preset }) => !nullable && preset === null).map((one) => one.name)
  const schema: Schema = { properties, required }
  const before = Object.fromEntries(collection.columns.map((column) => [column.name, row?.[column.name] ?? undefined]))
  const form = useForm<Values>({ initialValues: before })
  const body = bodyOf(schema, nothing, form.getValues(), before)
  const editors: Record<string, Editor> = {
    date: ({ label, help, value, onChange, error }) => (
      <TextInput
        type="date"
        label={label}
        description={help}
        error={error}
        value={(value as string | undefined) ?? ''}
        onChange={(event) => onChange(event.currentTarget.value || undefined)}
      />
    ),
  }
  for (const { references } of collection.columns)
    if (references)
      editors[`row of ${references.collection}`] = (props) => (
        <RowSelect collection={references.collection} {...props} />
      )
  const editorOf: EditorOf = (named) => (named === undefined ? undefined : editors[named])
  const work = useMutation({
    mutationFn: async () => {
      if (row) return (await call(adminUpdateRow, { path: { ...path, name, id: String(row['id']) }, body })).data as Row
      const owned = { ...(owner ? { user_id: owner } : {}), ...(group ? { group_id: group } : {}) }
      return (await call(adminCreateRow, { path: { ...path, name }, body: { ...body, ...owned } as never })).data as Row
    },
    onSuccess: async (next) => {
      putRow(path.projectId, name, next)
      done(row ? 'Saved.' : `“${rowTitle(next)}” is added.`)
      onClose()
      if (!row) await refresh()
    },
    onError: (error) => {
      const column = error instanceof TrellisError ? error.details?.['column'] : undefined
      if (typeof column === 'string' && column in properties) form.setFieldError(column, error.message)
    },
  })
  useUnsaved([body, owner, group], work)
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        work.mutate()
      }}
    >
      <Stack gap="md">
        {row ? (
          <Facts
            facts={[
              ['Owner', <UserName key="owner" id={row['user_id'] as string | null} />],
              ['Created', <When key="created" at={row['created_at'] as string} />],
              ['Changed', <When key="changed" at={row['updated_at'] as string} />],
              ['Id', <Id key="id" value={String(row['id'])} />],
            ]}
          />
        ) : (
          <>
            {isGroup && <GroupSelect value={group} onChange={setGroup} />}
            <UserSelect
              label="Owner"
              description={isGroup ? 'The member who wrote it' : 'Whose row it is'}
              required={!isGroup}
              value={owner}
              onChange={setOwner}
            />
          </>
        )}
        <Fields schema={schema} document={nothing} form={form} editorOf={editorOf} words={{}} />
        {collection.columns.length === 0 && (
          <Text size="sm" c="dimmed">
            The collection has no columns of its own yet.
          </Text>
        )}
      </Stack>
      <FormFoot
        verb={row ? 'Save row' : 'Add row'}
        work={work}
        onCancel={onClose}
        isDisabled={row ? Object.keys(body).length === 0 : isGroup ? !group : !owner}
      />
    </form>
  )
}
