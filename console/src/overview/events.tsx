import { Badge, Group, Skeleton, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { listEvents } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { useEventNames } from '../parts/event_names.ts'
import { Card, ProjectLink, useProject } from '../parts/page.tsx'
import { count, Failure, When } from '../parts/states.tsx'

/** The newest events, as they come. */
export const Latest = () => {
  const { path } = useProject()
  const { data, error, refetch } = useQuery({
    queryKey: ['latest', path.projectId],
    queryFn: () => call(listEvents, { path, query: { limit: 9 } }),
    refetchInterval: 5000,
  })
  return (
    <Card
      title="Latest events"
      actions={
        <Badge variant="dot" color="leaf">
          live
        </Badge>
      }
    >
      {error && <Failure error={error} onRetry={refetch} />}
      {!data && !error && <Skeleton h={240} />}
      <Stack gap={8} className="links">
        {data?.data.length === 0 && (
          <Text size="sm" c="dimmed">
            Events appear here as your app sends them.
          </Text>
        )}
        {data?.data.map((event) => (
          <Group key={event.id} justify="space-between" wrap="nowrap" gap="xs">
            <ProjectLink to={event.app_user_id ? `users/${event.app_user_id}` : 'events'}>
              {event.event_name}
            </ProjectLink>
            <Text size="xs" c="dimmed" component="span" className="nowrap">
              <When at={event.occurred_at} />
            </Text>
          </Group>
        ))}
      </Stack>
    </Card>
  )
}

/** The most frequent events of 30 days. */
export const Names = () => {
  const { data = [] } = useEventNames()
  if (data.length === 0) return null
  return (
    <table className="table" aria-label="Events of 30 days by name">
      <thead>
        <tr>
          <th scope="col">Event</th>
          <th scope="col" data-number>
            30 days
          </th>
          <th scope="col" data-number>
            Users
          </th>
        </tr>
      </thead>
      <tbody>
        {data.slice(0, 6).map((name) => (
          <tr key={name.event_name}>
            <td>
              <ProjectLink to="events" search={{ event: name.event_name }}>
                {name.event_name}
              </ProjectLink>
            </td>
            <td data-number>{count(name.count_30d)}</td>
            <td data-number>{count(name.users_30d)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
