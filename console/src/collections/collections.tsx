import { Button } from '@mantine/core'
import { Database, Plus } from 'lucide-react'
import { List } from '../parts/list.tsx'
import { PageHead, ProjectLink, useOpen } from '../parts/page.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { type Collection, policyWord } from './data.ts'

/** Every collection of the project. */
export const Page = () => {
  const open = useOpen()
  const make = (
    <Button leftSection={<Plus size={16} />} onClick={() => open('collections/new')}>
      New collection
    </Button>
  )
  return (
    <>
      <PageHead
        title="Collections"
        about="Tables of your own, with rules for who reads and changes their rows"
        actions={make}
      />
      <List<Collection>
        name="Collections"
        operation="GET /v1/admin/projects/{projectId}/collections"
        keyOf={({ name }) => name}
        to={({ name }) => `collections/${name}`}
        columns={[
          {
            title: 'Collection',
            show: ({ name, description, columns }) => (
              <>
                <ProjectLink to={`collections/${name}`}>{name}</ProjectLink>
                <span className="cell-sub">
                  {description || columns.map((column) => column.name).join(', ') || 'no columns yet'}
                </span>
              </>
            ),
          },
          { title: 'Rows', isNumber: true, show: ({ row_count_estimate }) => count(row_count_estimate) },
          { title: 'Columns', isNumber: true, show: ({ columns }) => count(columns.length) },
          { title: 'Read by', show: ({ read_policy }) => policyWord(read_policy) },
          { title: 'Changed by', show: ({ write_policy }) => policyWord(write_policy) },
          { title: 'Definition changed', show: ({ updated_at }) => <When at={updated_at} /> },
        ]}
        empty={
          <Empty icon={<Database size={22} />} title="No collections yet" action={make}>
            A collection is a table for what your app keeps: songs, notes, orders. You choose its columns, and who may
            read and change a row.
          </Empty>
        }
      />
    </>
  )
}
