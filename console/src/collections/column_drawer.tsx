import { Stack, Switch, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { callAny, TrellisError } from '../api.ts'
import { Drawer } from '../parts/drawer.tsx'
import { FormFoot } from '../parts/form_foot.tsx'
import { useProject } from '../parts/page.tsx'
import { done, useRefresh } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { changeBody, columnBody, type Draft, draftOf, emptyDraft } from './column_draft.ts'
import { Bounds, NameInput, PresetInput, TypeSelect } from './column_inputs.tsx'
import { type Collection, type CollectionColumn, one } from './data.ts'

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
      <FormFoot
        verb={isNew ? 'Add column' : 'Save column'}
        work={work}
        onCancel={onClose}
        isDisabled={draft.name === '' || (!isNew && Object.keys(body).length === 0)}
        note={typeof sample === 'number' && <Text size="sm">{sample} rows stand against it.</Text>}
      />
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
