import { Avatar, Badge, Group as Line, Skeleton, Stack, Text } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { listUsers, previewSegment } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { ProjectLink, useProject } from '../parts/page.tsx'
import { count, sentenceOf } from '../parts/states.tsx'
import { nameOf } from '../parts/users.tsx'
import { isWhole } from './leaves.ts'
import { type Group, placesOf, rulesOf } from './rules.ts'

/** How many users match now, and some of them, while the conditions are edited. */
export const useSize = (group: Group) => {
  const { path } = useProject()
  const leaves = placesOf(group)
  const isReady = leaves.length > 0 && leaves.every(([, leaf]) => isWhole(leaf))
  const [settled] = useDebouncedValue(JSON.stringify(rulesOf(group)), 350)
  const preview = useQuery({
    queryKey: ['segment size', path.projectId, settled],
    enabled: isReady,
    retry: false,
    queryFn: () => call(previewSegment, { path, body: { rules: JSON.parse(settled) } }),
    placeholderData: (before) => before,
  })
  const all = useQuery({
    queryKey: ['user count', path.projectId],
    queryFn: async () => (await call(listUsers, { path, query: { limit: 1 } })).total,
  })
  return { preview, all: all.data, isReady, isEmpty: leaves.length === 0 }
}

/** The size as a number and a share, with some of the users. */
export const Size = ({ size }: { size: ReturnType<typeof useSize> }) => {
  const { preview, all, isReady, isEmpty } = size
  const data = isReady && !preview.error ? preview.data?.data : undefined
  const share = data && all ? Math.round((data.count / all) * 100) : undefined
  return (
    <aside className="card sticky" aria-label="Who matches now" aria-busy={preview.isFetching}>
      <Stack gap="sm">
        <Line justify="space-between">
          <Text fw={600} fz={17}>
            Who matches now
          </Text>
          <Badge variant="dot" color="leaf">
            live
          </Badge>
        </Line>
        <div role="status">
          {data ? (
            <>
              <Text fz={32} fw={600} lh={1.2}>
                {data.is_estimate && 'about '}
                {count(data.count)}
              </Text>
              <Text size="sm" c="dimmed">
                {data.count === 1 ? 'user' : 'users'}
                {share !== undefined && `, ${share} % of ${count(all)}`}
                {data.is_estimate && `, give or take ${count(data.margin)}`}
              </Text>
              <div className="meter" aria-hidden>
                <div style={{ width: `${Math.min(100, share ?? 0)}%` }} />
              </div>
            </>
          ) : isEmpty ? (
            <Text size="sm" c="dimmed">
              Add a condition: the number appears as you type.
            </Text>
          ) : preview.error && isReady ? (
            <Text size="sm" c="var(--bad)">
              {sentenceOf(preview.error)}
            </Text>
          ) : isReady ? (
            <Skeleton h={60} />
          ) : (
            <Text size="sm" c="dimmed">
              A condition is not complete yet.
            </Text>
          )}
        </div>
        {data && data.sample.length > 0 && (
          <Stack gap={6} className="links">
            <Text size="xs" c="dimmed">
              Some of them
            </Text>
            {data.sample.slice(0, 6).map((user) => (
              <Line key={user.id} gap={8} wrap="nowrap">
                <Avatar size={22} name={nameOf(user)} color="initials" aria-hidden />
                <ProjectLink to={`users/${user.id}`}>{nameOf(user)}</ProjectLink>
              </Line>
            ))}
          </Stack>
        )}
      </Stack>
    </aside>
  )
}
