import { Box } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { MessageSquare } from 'lucide-react'
import { getMessagingStats } from '../../../sdk/src/generated/admin.ts'
import { call, type Row } from '../api.ts'
import { Figure } from '../parts/chart.tsx'
import { List } from '../parts/list.tsx'
import { PageHead, ProjectLink, useProject } from '../parts/page.tsx'
import { count, counted, Empty, When } from '../parts/states.tsx'

type Participant = { readonly display_name?: string | null; readonly user?: { readonly display_name?: string | null } }

/** A conversation by its name, or by who takes part in it. */
export const nameOf = (row: Row): string => {
  if (row['name']) return String(row['name'])
  const people = (row['conversation_participants'] as readonly Participant[] | undefined) ?? []
  const names = people.flatMap((one) => one.display_name ?? one.user?.display_name ?? [])
  return names.length > 0 ? names.slice(0, 3).join(', ') : counted(people.length, 'person', 'people')
}

/** Conversations of users, the one that was written in last first. */
export const Page = () => {
  const { path } = useProject()
  const { data } = useQuery({
    queryKey: ['messaging', path.projectId],
    queryFn: () => call(getMessagingStats, { path }),
  })
  const stats = data?.data
  return (
    <>
      <PageHead title="Conversations" about="What users write to each other" />
      {stats && stats.conversations.total > 0 && (
        <Box className="cards" mb="md">
          <Figure
            title="Conversations"
            value={count(stats.conversations.total)}
            about={`${count(stats.conversations.group)} of groups`}
          />
          <Figure
            title="Messages"
            value={count(stats.messages.total)}
            about={`${count(stats.messages.last_7d)} in 7 days`}
          />
          <Figure title="Writers" value={count(stats.active_senders.last_7d)} about="in 7 days" />
        </Box>
      )}
      <List<Row>
        name="Conversations"
        operation="GET /v1/admin/projects/{projectId}/messaging/conversations"
        to={(row) => `messages/${row['id']}`}
        columns={[
          {
            title: 'Conversation',
            show: (row) => (
              <>
                <ProjectLink to={`messages/${row['id']}`}>{nameOf(row)}</ProjectLink>
                <span className="cell-sub">
                  {String((row['last_message'] as Row | null)?.['body'] ?? 'Nothing written yet')}
                </span>
              </>
            ),
          },
          { title: 'Kind', show: (row) => (row['type'] === 'direct' ? 'two people' : 'a group') },
          { title: 'Messages', isNumber: true, show: (row) => count(row['message_count'] as number) },
          { title: 'Last', show: (row) => <When at={row['last_activity_at'] as string} /> },
        ]}
        empty={
          <Empty icon={<MessageSquare size={22} />} title="No conversations yet">
            They begin when a user of your app writes to another one.
          </Empty>
        }
      />
    </>
  )
}
