import { Button, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { adminGetRow } from '../../../sdk/src/generated/admin.ts'
import { call, type Row } from '../api.ts'
import { Drawer } from '../parts/drawer.tsx'
import { useProject } from '../parts/page.tsx'
import { Failure } from '../parts/states.tsx'
import type { Collection } from './data.ts'
import { RowForm } from './row_form.tsx'
import { rowTitle } from './values.ts'

/** A whole row at the right: every column with the control of its type. Without a row, a new one. */
export const RowPanel = ({
  collection,
  id,
  onClose,
  onDelete,
}: {
  collection: Collection
  /** An id, `new`, or nothing while it is closed. */
  id: string | undefined
  onClose: () => void
  onDelete: (id: string) => void
}) => {
  const { path } = useProject()
  const isNew = id === 'new'
  const { data, error, refetch } = useQuery({
    queryKey: ['rows', path.projectId, collection.name, 'one', id],
    enabled: id !== undefined && !isNew,
    staleTime: 0,
    queryFn: async () =>
      (await call(adminGetRow, { path: { ...path, name: collection.name, id: id ?? '' } })).data as Row,
  })
  const row = isNew ? undefined : data
  return (
    <Drawer opened={id !== undefined} onClose={onClose} title={isNew ? `New row of ${collection.name}` : rowTitle(row)}>
      {error && !isNew && <Failure error={error} onRetry={refetch} />}
      {(isNew || row) && <RowForm key={id} collection={collection} row={row} onClose={onClose} />}
      {row && (
        <Group mt="md">
          <Button
            variant="subtle"
            color="red.8"
            size="compact-sm"
            onClick={() => {
              onClose()
              onDelete(String(row['id']))
            }}
          >
            Delete this row
          </Button>
        </Group>
      )}
    </Drawer>
  )
}
