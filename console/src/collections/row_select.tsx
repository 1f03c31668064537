import { Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type ComponentProps, useState } from 'react'
import { adminFindRows, adminGetRow } from '../../../sdk/src/generated/admin.ts'
import { call, callAny, type Row } from '../api.ts'
import type { Editor } from '../parts/form/field.ts'
import { useProject } from '../parts/page.tsx'
import type { Collection } from './data.ts'
import { filterOf } from './filters.ts'
import { rowTitle } from './values.ts'

/** A row of another collection, found by its texts. */
export const RowSelect = ({ collection, ...props }: { collection: string } & ComponentProps<Editor>) => {
  const { path } = useProject()
  const [text, setText] = useState('')
  const { data: definition } = useQuery({
    queryKey: ['collection', path.projectId, collection],
    queryFn: async () =>
      (await callAny('GET /v1/admin/projects/{projectId}/collections/{name}', { path: { ...path, name: collection } }))
        .data as Collection,
  })
  const { data } = useQuery({
    queryKey: ['rows', path.projectId, collection, 'choices', text],
    enabled: definition !== undefined,
    placeholderData: (before) => before,
    queryFn: async () => {
      const filter = filterOf(definition?.columns ?? [], [], text)
      const body = { limit: 20, ...(filter ? { filter } : {}) } as never
      return (await call(adminFindRows, { path: { ...path, name: collection }, body })).data as readonly Row[]
    },
  })
  const chosen = useQuery({
    queryKey: ['rows', path.projectId, collection, 'one', props.value],
    enabled: typeof props.value === 'string',
    queryFn: async () =>
      (await call(adminGetRow, { path: { ...path, name: collection, id: String(props.value) } })).data as Row,
  })
  const rows = [
    ...(data ?? []),
    ...(chosen.data && !data?.some(({ id }) => id === chosen.data['id']) ? [chosen.data] : []),
  ]
  return (
    <Select
      label={props.label}
      description={`A row of ${collection}`}
      error={props.error}
      searchable
      clearable
      clearButtonProps={{ 'aria-label': 'Clear' }}
      data={rows.map((row) => ({ value: String(row['id']), label: rowTitle(row) }))}
      value={(props.value as string | undefined) ?? null}
      onChange={(next) => props.onChange(next ?? undefined)}
      onSearchChange={(next) => setText(next === rowTitle(chosen.data) ? '' : next)}
      filter={({ options }) => options}
      nothingFoundMessage="No such row"
    />
  )
}
