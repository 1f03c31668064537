import { Button } from '@mantine/core'
import { Plus, Rss } from 'lucide-react'
import { useState } from 'react'
import { adminDeleteFeedEntry } from '../../../sdk/src/generated/admin.ts'
import { call, type Row } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { wordsOf } from '../parts/form/schema.ts'
import { List } from '../parts/list.tsx'
import { PageHead, ProjectLink, useProject } from '../parts/page.tsx'
import { done, Empty, When } from '../parts/states.tsx'

/** What feeds of users show: what others did, and what the product tells. */
export const Page = () => {
  const { path } = useProject()
  const [isWriting, setWriting] = useState(false)
  const [removed, setRemoved] = useState<Row>()
  const write = (
    <Button leftSection={<Plus size={16} />} onClick={() => setWriting(true)}>
      New entry
    </Button>
  )
  return (
    <>
      <PageHead title="Feeds" about="What users see of each other and of the product" actions={write} />
      <List<Row>
        name="Feeds"
        operation="GET /v1/admin/projects/{projectId}/feeds"
        columns={[
          { title: 'What', show: (row) => wordsOf(String(row['action'])) },
          {
            title: 'Who',
            show: (row) =>
              row['actor_id'] ? (
                <ProjectLink to={`users/${row['actor_id']}`}>
                  {String((row['actor'] as Row | null)?.['display_name'] ?? 'Anonymous user')}
                </ProjectLink>
              ) : (
                'The product'
              ),
          },
          {
            title: 'Seen by',
            show: (row) => (row['group_id'] ? 'a group' : row['actor_id'] ? 'friends' : 'everybody'),
          },
          { title: 'When', show: (row) => <When at={row['created_at'] as string} /> },
          {
            title: 'Actions',
            show: (row) => (
              <Button size="compact-sm" variant="default" onClick={() => setRemoved(row)}>
                Delete
              </Button>
            ),
          },
        ]}
        empty={
          <Empty icon={<Rss size={22} />} title="No entries yet" action={write}>
            Feeds fill as users do things that their friends and groups may see.
          </Empty>
        }
      />
      <Drawer opened={isWriting} onClose={() => setWriting(false)} title="New entry">
        <OperationForm
          operation="POST /v1/admin/projects/{projectId}/feeds"
          verb="Publish"
          onCancel={() => setWriting(false)}
          onDone={() => {
            setWriting(false)
            done('It stands in the feeds.')
          }}
        />
      </Drawer>
      <Confirm
        title="Delete the entry"
        verb="Delete"
        said="The entry is deleted."
        isOpen={removed !== undefined}
        onClose={() => setRemoved(undefined)}
        run={() => call(adminDeleteFeedEntry, { path: { ...path, entryId: String(removed?.['id']) } })}
      >
        Nobody sees it any more.
      </Confirm>
    </>
  )
}
