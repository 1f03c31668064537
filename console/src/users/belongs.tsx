import { Divider, Title } from '@mantine/core'
import type { Row } from '../api.ts'
import { Facts, ProjectLink } from '../parts/page.tsx'
import { When } from '../parts/states.tsx'
import { useAnswer } from '../parts/stats.tsx'
import { useUser } from './one_user.ts'

const user = 'GET /v1/admin/projects/{projectId}/users/{userId}'

/** The roles that a user was given, and the segments it is in; nothing where there are none. */
export const Belongs = () => {
  const { path } = useUser()
  const one = { userId: path.userId }
  const { data: roles = [] } = useAnswer<readonly Row[]>(`${user}/roles`, one)
  const { data: segments = [] } = useAnswer<readonly Row[]>(`${user}/segments`, one)
  return (
    <>
      {roles.length > 0 && (
        <>
          <Divider />
          <Title order={3}>Roles</Title>
          <Facts
            facts={roles.map((role) => [
              String(role['role_name']),
              <span key={`${role['role_key']} ${role['group_id']}`}>
                {role['group_id'] ? 'in one group' : 'everywhere'}
                {role['expires_at'] !== null && (
                  <>
                    , until <When at={role['expires_at'] as string} />
                  </>
                )}
              </span>,
            ])}
          />
        </>
      )}
      {segments.length > 0 && (
        <>
          <Divider />
          <Title order={3}>Segments</Title>
          <Facts
            facts={segments.map((segment) => [
              String(segment['name']),
              <ProjectLink key={String(segment['id'])} to={`segments/${segment['id']}`}>
                since <When at={segment['entered_at'] as string} />
              </ProjectLink>,
            ])}
          />
        </>
      )}
    </>
  )
}
