import { Progress, Stack } from '@mantine/core'
import { Target } from 'lucide-react'
import type { Row } from '../api.ts'
import { Bars, Figure } from '../parts/chart.tsx'
import { Days } from '../parts/days.tsx'
import { named } from '../parts/definitions/columns.tsx'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { rewardWords } from '../parts/form/reward.ts'
import { List as Entries } from '../parts/list.tsx'
import { Card } from '../parts/page.tsx'
import { Simulate } from '../parts/simulate.tsx'
import { count, counted, Empty, When } from '../parts/states.tsx'
import { Cell, useAnswer, useTotal } from '../parts/stats.tsx'
import { Status } from '../parts/status.tsx'
import { UserName } from '../parts/users.tsx'

const base = '/v1/admin/projects/{projectId}/challenges/{challengeId}'
const pathOf = (row: Row) => ({ challengeId: String(row['id']) })

const goal = (row: Row): string => {
  const value = count(row['goal_value'] as number)
  if (row['goal_type'] === 'event_count') return `${value} × ${row['event_name']}`
  return row['goal_type'] === 'xp_earned' ? `${value} XP earned` : `a streak of ${value}`
}
const rewards = (row: Row): string =>
  [row['reward_xp'] ? `${count(row['reward_xp'] as number)} XP` : undefined, rewardWords(row['reward'])]
    .filter(Boolean)
    .join(', ') || 'nothing'

type Participant = Row & { readonly progress: number; readonly goal_value: number }

/** How far users of the first page are: the server gives no figures of a challenge. */
const useProgress = (row: Row) =>
  useAnswer<readonly Participant[]>(`GET ${base}/participants`, pathOf(row), { limit: 200 })

const buckets = ['0', '1-24 %', '25-49 %', '50-74 %', '75-99 %', 'reached']
const bucketOf = ({ progress, goal_value }: Participant) =>
  progress >= goal_value ? 5 : progress === 0 ? 0 : 1 + Math.floor((progress / goal_value) * 4)

const Detail = ({ row }: { row: Row }) => {
  const total = useTotal(`GET ${base}/participants`, pathOf(row))
  const { data, error, refetch } = useProgress(row)
  const isPart = (total.data ?? 0) > (data?.length ?? 0)
  const reached = data?.filter((one) => one.progress >= one.goal_value).length
  return (
    <>
      <div className="cards">
        <Figure title="Participants" value={count(total.data)} />
        <Figure
          title="Reached the goal"
          value={`${count(reached)}${isPart && reached === data?.length ? ' or more' : ''}`}
          about={data && data.length > 0 && !isPart ? `${Math.round(((reached ?? 0) / data.length) * 100)} %` : ' '}
        />
        <Figure title="Reward" value={rewards(row)} />
      </div>
      <Days
        operation={`GET ${base}/daily`}
        path={pathOf(row)}
        charts={[
          ['joined', 'Joined each day'],
          ['completed', 'Completed each day'],
        ]}
      />
      <Bars
        title={isPart ? `How far the best ${data?.length} are` : 'How far users are'}
        of="Users"
        by="Share of the goal"
        bars={data && buckets.map((label, at) => ({ label, value: data.filter((one) => bucketOf(one) === at).length }))}
        error={error}
        onRetry={refetch}
      />
      <Card title="Participants" flush>
        <Entries<Row>
          name="Participants"
          isInside
          operation={`GET ${base}/participants`}
          path={pathOf(row)}
          keyOf={(one) => String(one['app_user_id'])}
          columns={[
            {
              title: 'User',
              show: (one) => (
                <UserName
                  id={one['app_user_id'] as string}
                  user={one['app_users'] as { display_name: string } | null}
                />
              ),
            },
            {
              title: 'Progress',
              show: (one) => {
                const [done, whole] = [Number(one['progress']), Number(one['goal_value'])]
                return (
                  <Stack gap={4} miw={140} fz={12}>
                    <Progress value={(Math.min(done, whole) / whole) * 100} aria-label={`${done} of ${whole}`} />
                    <span>
                      {count(done)} of {count(whole)}
                    </span>
                  </Stack>
                )
              },
            },
            { title: 'Status', show: (one) => <Status value={String(one['status'])} /> },
            { title: 'Joined', show: (one) => <When at={one['joined_at'] as string} /> },
          ]}
          empty={
            <Empty icon={<Target size={22} />} title="Nobody takes part yet">
              Users join in your app, or with their first {String(row['event_name'] ?? 'progress')}.
            </Empty>
          }
        />
      </Card>
    </>
  )
}

const Participants = ({ row }: { row: Row }) => (
  <Cell answer={useTotal(`GET ${base}/participants`, pathOf(row))} show={(total: number) => count(total)} />
)

const SimulateChallenge = ({ row }: { row: Row }) => (
  <Simulate
    title={`Simulate “${row['name']}”`}
    about="How many users would have reached the goal in the time of the same length before. Nothing is written."
    operation={`POST ${base}/simulate`}
    path={pathOf(row)}
  >
    {(result) => (
      <Card title="In the time before">
        <p>
          {result['is_estimate'] ? 'About ' : ''}
          <strong>{counted(result['expected_completions'] as number, 'user')}</strong> would have reached it
          {result['rate'] === null ? '' : `: ${Math.round(Number(result['rate']) * 100)} % of those who were active`}.
        </p>
      </Card>
    )}
  </Simulate>
)

const day = (days: number) => {
  const at = new Date(Date.now() + days * 864e5)
  at.setHours(0, 0, 0, 0)
  return at.toISOString()
}

const kind: Kind = {
  path: 'challenges',
  id: 'challengeId',
  at: 'challenges',
  noun: 'challenge',
  plural: 'challenges',
  icon: Target,
  about: 'A goal for a time, alone or with a group, with a reward',
  empty: 'A challenge asks for something within a time, such as twenty lessons in a month.',
  columns: [
    named('challenges'),
    { title: 'Goal', show: goal },
    { title: 'Starts', show: (row) => <When at={row['start_at'] as string} /> },
    { title: 'Ends', show: (row) => <When at={row['end_at'] as string} /> },
    {
      title: 'Users',
      isNumber: true,
      show: (row) => <Participants row={row} />,
    },
    { title: 'Reward', show: rewards },
    {
      title: 'Status',
      show: (row) => <Status value={row['is_active'] === false ? 'paused' : String(row['status'])} />,
    },
  ],
  preset: { goal_type: 'event_count', goal_value: 10, start_at: day(1), end_at: day(8) },
  words: {
    name: { section: 'The challenge' },
    description: { section: 'The challenge' },
    start_at: { title: 'Starts', section: 'The challenge' },
    end_at: { title: 'Ends', section: 'The challenge' },
    goal_type: {
      title: 'Goal',
      section: 'Goal',
      choices: { event_count: 'Events', xp_earned: 'XP', streak_maintained: 'A streak' },
    },
    goal_value: { title: 'How much', section: 'Goal' },
    event_name: { title: 'Event', help: 'Where the goal is a number of events', section: 'Goal' },
    reward_xp: { title: 'XP', section: 'Reward' },
    reward_achievement_id: { title: 'Achievement', section: 'Reward' },
    reward: { title: 'And', section: 'Reward' },
    segment_id: { title: 'Segment', help: 'Everybody if empty', section: 'Who and how often' },
    recurrence: { title: 'Again', section: 'Who and how often', choices: { none: 'Never' } },
    team_mode: { title: 'Takes part', section: 'Who and how often', choices: { none: 'Each user', group: 'Groups' } },
    is_active: { title: 'Active', section: 'Who and how often' },
  },
  actions: [
    {
      title: 'Count again',
      operation: `POST ${base}/recompute`,
      verb: 'Count again',
      said: 'The challenge is counted again in the background.',
      asks: () => 'The progress of all users is counted again from stored events.',
    },
  ],
  Detail,
  Buttons: SimulateChallenge,
}
export const { List, New, One } = pagesOf(kind)
