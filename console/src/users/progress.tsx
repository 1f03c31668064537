import { Badge, Button, Group, Menu, Skeleton, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Award, Sparkles } from 'lucide-react'
import { listEvents } from '../../../sdk/src/generated/admin.ts'
import type { XpHistory } from '../../../sdk/src/generated/schemas.ts'
import { call, callAny, type Row } from '../api.ts'
import { ListCard } from '../parts/list_card.tsx'
import { Card, ProjectLink } from '../parts/page.tsx'
import { count, done, Empty, failed, useRefresh, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { useXp } from './facts.tsx'
import { useUser } from './one_user.ts'

/** System events of the user of one name, newest first: what lists by user the API has for no other way. */
const useMade = (event_name: string, limit = 50) => {
  const { path } = useUser()
  const { data } = useQuery({
    queryKey: ['made', path.projectId, path.userId, event_name],
    queryFn: () =>
      call(listEvents, { path: { projectId: path.projectId }, query: { event_name, user_id: path.userId, limit } }),
  })
  return data?.data
}

const Streak = ({ streak }: { streak: Row }) => {
  const { path } = useUser()
  const refresh = useRefresh()
  const act = async (what: string, body: Row, said: string) => {
    await callAny(`POST /v1/admin/projects/{projectId}/streaks/{idOrKey}/users/{userId}/${what}`, {
      path: { ...path, idOrKey: streak['key'] },
      body,
    })
    done(said)
    await refresh()
  }
  const name = String(streak['name'])
  const isBroken = streak['status'] === 'broken'
  const period = streak['period'] as Row
  return (
    <Group justify="space-between" wrap="nowrap" align="flex-start">
      <div>
        <Group gap={8} className="links">
          <ProjectLink to={`streaks/${streak['streak_definition_id']}`}>{name}</ProjectLink>
          <Status value={String(streak['status'])} />
        </Group>
        <Text size="sm" c="dimmed" component="div">
          {count(streak['current_count'] as number)} now, {count(streak['longest_count'] as number)} at best
          {Number(streak['freezes_remaining']) > 0 && `, ${streak['freezes_remaining']} freezes`}
          {!isBroken && period && (
            <>
              , {period['qualified'] ? 'done for now' : 'ends '}
              {!period['qualified'] && <When at={period['deadline'] as string} />}
            </>
          )}
        </Text>
      </div>
      <Menu>
        <Menu.Target>
          <Button size="compact-sm" variant="default">
            Adjust
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {isBroken ? (
            <Menu.Item onClick={() => act('restore', {}, `${name} is back.`).catch(failed)}>Restore it</Menu.Item>
          ) : (
            <Menu.Item onClick={() => act('qualify', {}, `${name} is done for now.`).catch(failed)}>
              Count the current period
            </Menu.Item>
          )}
          <Menu.Item onClick={() => act('freezes', { amount: 1 }, 'One freeze more.').catch(failed)}>
            Give a freeze
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </Group>
  )
}

const sources: Readonly<Record<string, string>> = {
  event: 'an event',
  achievement: 'an achievement',
  challenge: 'a challenge',
  league: 'a league',
  reward: 'a reward',
  admin: 'your team',
  merge: 'a merged account',
}

const Unlocked = () => {
  const unlocked = useMade('svc.achievement.unlocked')
  const done = useMade('svc.challenge.completed')
  const ranks = useMade('svc.leaderboard.rank_changed')
  if (!unlocked) return <Skeleton h={80} />
  const boards = new Map((ranks ?? []).map((event) => [String(event.properties['key']), event] as const).reverse())
  return (
    <Card title="Achievements, challenges and boards">
      <Stack gap={8} className="links">
        {unlocked.length === 0 && !done?.length && boards.size === 0 && (
          <Text size="sm" c="dimmed">
            Nothing reached yet.
          </Text>
        )}
        {unlocked.map((event) => (
          <Group key={event.id} gap={8} justify="space-between" wrap="nowrap">
            <Group gap={8} wrap="nowrap">
              <Award size={16} color="var(--mantine-color-yellow-6)" aria-hidden />
              <ProjectLink to={`achievements/${event.properties['achievement_id']}`}>
                {String(event.properties['name'])}
              </ProjectLink>
            </Group>
            <Text size="xs" c="dimmed" component="span">
              <When at={event.occurred_at} />
            </Text>
          </Group>
        ))}
        {(done ?? []).map((event) => (
          <Group key={event.id} gap={8} justify="space-between" wrap="nowrap">
            <span>
              Completed{' '}
              <ProjectLink to={`challenges/${event.properties['challenge_id']}`}>
                {String(event.properties['name'])}
              </ProjectLink>
            </span>
            <Text size="xs" c="dimmed" component="span">
              <When at={event.occurred_at} />
            </Text>
          </Group>
        ))}
        {[...boards.values()].map((event) => (
          <Group key={event.id} gap={8} justify="space-between" wrap="nowrap">
            <span>
              Rank {String(event.properties['rank'])} on{' '}
              <ProjectLink to={`leaderboards/${event.properties['key']}`}>
                {String(event.properties['name'] ?? event.properties['key'])}
              </ProjectLink>
            </span>
            <Text size="xs" c="dimmed" component="span">
              <When at={event.occurred_at} />
            </Text>
          </Group>
        ))}
      </Stack>
    </Card>
  )
}

/** XP, streaks, achievements and boards of a user. */
export const Progress = () => {
  const { path, user } = useUser()
  const xp = useXp()
  const [last] = useMade('svc.xp.awarded', 1) ?? []
  const streaks = (user.data?.streaks ?? []) as unknown as readonly Row[]
  return (
    <div className="column">
      {streaks.length > 0 && (
        <Card title="Streaks">
          <Stack gap="md">
            {streaks.map((streak) => (
              <Streak key={String(streak['id'])} streak={streak} />
            ))}
          </Stack>
        </Card>
      )}
      <Unlocked />
      <ListCard<XpHistory>
        title="XP"
        actions={
          <Badge variant="light" color="violet" styles={{ label: { color: 'var(--mantine-color-text)' } }}>
            {count(xp ?? 0)} XP, level {String(last?.properties['level'] ?? 1)}
          </Badge>
        }
        name="Ledger of XP"
        operation="GET /v1/admin/projects/{projectId}/xp/transactions"
        query={{ user_id: path.userId }}
        limit={20}
        columns={[
          {
            title: 'From',
            show: (entry) =>
              [
                entry.rule_key ?? sources[entry.source] ?? entry.source,
                entry.reason,
                entry.clipped_by && `cut by ${entry.clipped_by.replace(/_/g, ' ')}`,
              ]
                .filter(Boolean)
                .join(': '),
          },
          {
            title: 'Change',
            isNumber: true,
            show: (entry) => `${entry.amount > 0 ? '+' : ''}${count(entry.amount)}`,
          },
          { title: 'After', isNumber: true, show: (entry) => count(entry.total_after) },
          { title: 'When', show: (entry) => <When at={entry.created_at} /> },
        ]}
        empty={
          <Empty icon={<Sparkles size={22} />} title="No XP yet">
            Rules give it for events.
          </Empty>
        }
      />
    </div>
  )
}
