import { Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { callAny, type Row } from '../api.ts'
import { useProject } from '../parts/page.tsx'

/** A group, found by its name. */
export const GroupSelect = ({
  value,
  onChange,
}: {
  value: string | undefined
  onChange: (id: string | undefined) => void
}) => {
  const { path } = useProject()
  const [text, setText] = useState('')
  const { data } = useQuery({
    queryKey: ['groups', path.projectId, text],
    placeholderData: (before) => before,
    queryFn: async () =>
      (
        await callAny('GET /v1/admin/projects/{projectId}/groups', {
          path,
          query: { limit: 20, ...(text ? { search: text } : {}) },
        })
      ).data as readonly Row[],
  })
  return (
    <Select
      label="Group"
      required
      searchable
      data={(data ?? []).map((group) => ({ value: String(group['id']), label: String(group['name']) }))}
      value={value ?? null}
      onChange={(next) => onChange(next ?? undefined)}
      onSearchChange={setText}
      nothingFoundMessage="No such group"
    />
  )
}
