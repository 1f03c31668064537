import { Group, Stack } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { adminGetUser, listEvents } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Card, Facts, ProjectLink, useProject } from '../parts/page.tsx'
import { count, When } from '../parts/states.tsx'
import { nameOf } from '../parts/users.tsx'
import { Standing } from '../users/users.tsx'

/** Who wrote an item, or is it, and what came of what that user wrote before. */
export const Author = ({ id, isSubject }: { id: string; isSubject: boolean }) => {
  const { path } = useProject()
  const { data } = useQuery({
    queryKey: ['user', path.projectId, id],
    queryFn: async () => (await call(adminGetUser, { path: { ...path, userId: id } })).data,
    retry: false,
  })
  const record = useQuery({
    queryKey: ['record', path.projectId, id],
    queryFn: async () => {
      const query = { event_name: 'svc.moderation.resolved', user_id: id, limit: 50 }
      return (await call(listEvents, { path, query })).data
    },
  })
  if (!data) return null
  const verdictsOf = (status: string) =>
    record.data?.filter(({ properties }) => properties['status'] === status).length ?? 0
  return (
    <Card title={isSubject ? 'The user' : 'Author'}>
      <Stack gap="sm">
        <Group justify="space-between" className="links">
          <ProjectLink to={`users/${id}`}>
            <b>{nameOf(data)}</b>
          </ProjectLink>
          <Standing user={data} />
        </Group>
        <Facts
          facts={[
            ['Mail', data.email],
            ['Joined', <When key="joined" at={data.created_at} />],
            ['Last seen', <When key="seen" at={data.last_seen_at} none="never" />],
            ['Removed before', count(verdictsOf('rejected'))],
            ['Kept before', count(verdictsOf('approved'))],
          ]}
        />
      </Stack>
    </Card>
  )
}
