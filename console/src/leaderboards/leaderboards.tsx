import { Badge, Button, Drawer, Group, Select, Stack } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Trophy } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { callAny, type Row } from '../api.ts'
import { activeColumn, factsOf, type Kind, named, pagesOf, RowActions } from '../parts/definitions.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { rewardWords } from '../parts/form/reward.ts'
import { List as Entries } from '../parts/list.tsx'
import { Card, Facts, useAddress, useProject, Views } from '../parts/page.tsx'
import { count, dayOf, done, Empty, failed, useRefresh, When } from '../parts/states.tsx'
import { Cell, useAnswer, useTotal } from '../parts/stats.tsx'
import { Status } from '../parts/status.tsx'
import { UserName, UserPicker } from '../parts/users.tsx'
import { ImportScores } from './import.tsx'

const base = 'GET /v1/admin/projects/{projectId}/leaderboards/{idOrKey}'
const rebuild = '/v1/admin/projects/{projectId}/leaderboards/{idOrKey}/rebuild'
const pathOf = (row: Row) => ({ idOrKey: String(row['id']) })
type Run = {
  readonly key: string
  readonly status: string
  readonly starts_at: string | null
  readonly ends_at: string | null
}

const sources: Readonly<Record<string, string>> = {
  manual: 'Sent by your app',
  event: 'Events',
  xp: 'XP',
  currency: 'A currency',
  streak: 'A streak',
}
const periods: Readonly<Record<string, string>> = {
  all_time: 'Never',
  daily: 'Each day',
  weekly: 'Each week',
  monthly: 'Each month',
}

const sourceWords = (row: Row): string => {
  const source = row['source'] as Row
  if (source['type'] === 'event')
    return `${source['event_name']}${source['value_property'] ? `, by ${source['value_property']}` : ''}`
  return String(source['currency_code'] ?? source['streak_key'] ?? sources[String(source['type'])])
}

/** `2026-W48` with its days. */
const runWords = ({ key, starts_at, ends_at }: Run) => {
  if (!starts_at || !ends_at) return key === 'all' ? 'All time' : key
  const last = new Date(new Date(ends_at).getTime() - 1).toISOString()
  return dayOf(starts_at) === dayOf(last) ? dayOf(starts_at) : `${dayOf(starts_at)} to ${dayOf(last)}`
}

const Participants = ({ row }: { row: Row }) => (
  <Cell answer={useTotal(`${base}/entries`, pathOf(row))} show={(total: number) => count(total)} />
)

const useRuns = (row: Row) => useAnswer<readonly Run[]>(`${base}/runs`, pathOf(row), { limit: 50 })

const SetScore = ({ row, user, onClose }: { row: Row; user: Row | undefined; onClose: () => void }) => {
  const [chosen, setChosen] = useState<string>()
  const of = String(user?.['app_user_id'] ?? chosen ?? '')
  return (
    <Stack gap="sm">
      {user === undefined && <UserPicker value={chosen} onChange={setChosen} />}
      {of && (
        <OperationForm
          operation="PUT /v1/admin/projects/{projectId}/leaderboards/{idOrKey}/entries/{userId}"
          path={{ ...pathOf(row), userId: of }}
          {...(user ? { preset: { score: user['score'] } } : {})}
          words={{
            score: { title: 'Score', help: 'Replaces what the user has in the current run, whatever the scoring.' },
            metadata: { isHidden: true },
          }}
          verb="Set score"
          onCancel={onClose}
          onDone={() => {
            onClose()
            done('The score is set.')
          }}
        />
      )}
    </Stack>
  )
}

/** Fills a new board from what is stored. */
const CountStored = ({ row }: { row: Row }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const work = useMutation({
    mutationFn: () => callAny(`POST ${rebuild}`, { path: { ...path, ...pathOf(row) }, body: {} }),
    onSuccess: async () => {
      done('Stored events are being counted.')
      await refresh()
    },
    onError: failed,
  })
  return (
    <Button variant="default" size="xs" loading={work.isPending} onClick={() => work.mutate()}>
      Count stored events
    </Button>
  )
}

const Now = ({ row }: { row: Row }) => {
  const [{ run }, setAddress] = useAddress<'run'>()
  const { path: project } = useProject()
  const { data: runs } = useRuns(row)
  const [editing, setEditing] = useState<Row | 'new'>()
  const isOld = run !== undefined
  return (
    <>
      <Card
        title="Ranks"
        flush
        actions={
          <Group gap="xs">
            {runs && runs.length > 1 && (
              <Select
                size="xs"
                aria-label="Run"
                data={runs.map((one, at) => ({
                  value: one.key,
                  label: at === 0 && one.status === 'open' ? `${runWords(one)} (now)` : runWords(one),
                }))}
                value={run ?? runs[0]?.key ?? null}
                allowDeselect={false}
                onChange={(next) => setAddress({ run: next === runs[0]?.key ? undefined : (next ?? undefined) })}
              />
            )}
            {!isOld && (
              <Button size="xs" variant="default" onClick={() => setEditing('new')}>
                Set a score
              </Button>
            )}
          </Group>
        }
      >
        <Entries<Row>
          name="Ranks"
          isInside
          operation={`${base}/entries`}
          path={pathOf(row)}
          query={{ run }}
          every={isOld ? 0 : 5000}
          keyOf={(entry) => String(entry['app_user_id'])}
          columns={[
            {
              title: 'Rank and user',
              show: (entry) => (
                <>
                  <span className="rank">{count(entry['rank'] as number | null)}</span>
                  <UserName
                    id={entry['app_user_id'] as string}
                    user={entry['user'] as { display_name: string } | null}
                  />
                </>
              ),
            },
            { title: 'Score', isNumber: true, show: (entry) => count(entry['score'] as number) },
            { title: 'Submissions', isNumber: true, show: (entry) => count(entry['submissions'] as number) },
            { title: 'Reached', show: (entry) => <When at={entry['reached_at'] as string} /> },
            ...(isOld
              ? []
              : [
                  {
                    title: 'Actions',
                    isNumber: true,
                    show: (entry: Row) => (
                      <RowActions
                        isQuiet
                        row={entry}
                        path={{ ...pathOf(row), userId: String(entry['app_user_id']) }}
                        actions={[
                          {
                            title: 'Take out of the run',
                            operation: 'DELETE /v1/admin/projects/{projectId}/leaderboards/{idOrKey}/entries/{userId}',
                            verb: 'Take out',
                            said: 'The entry is out of the run.',
                            asks: () => 'The score of this user goes; new scores count again.',
                            undo: () =>
                              callAny('PUT /v1/admin/projects/{projectId}/leaderboards/{idOrKey}/entries/{userId}', {
                                path: { ...project, ...pathOf(row), userId: entry['app_user_id'] },
                                body: { score: entry['score'] },
                              }),
                          },
                        ]}
                        menu={[{ title: 'Set score', run: () => setEditing(entry) }]}
                      />
                    ),
                  },
                ]),
          ]}
          empty={
            <Empty
              icon={<Trophy size={22} />}
              title="No scores yet"
              action={(row['source'] as Row)['type'] === 'manual' ? undefined : <CountStored row={row} />}
            >
              {(row['source'] as Row)['type'] === 'manual'
                ? 'They appear as your app sends them, or as you set or import some.'
                : 'They appear as users reach them. What users did before is counted if you ask for it.'}
            </Empty>
          }
        />
      </Card>
      <Drawer opened={editing !== undefined} onClose={() => setEditing(undefined)} title="Set a score">
        {editing !== undefined && (
          <SetScore row={row} user={editing === 'new' ? undefined : editing} onClose={() => setEditing(undefined)} />
        )}
      </Drawer>
    </>
  )
}

const Runs = ({ row }: { row: Row }) => {
  const [, setAddress] = useAddress<'run' | 'view'>()
  return (
    <Card title="Runs" flush>
      <Entries<Row>
        name="Runs"
        isInside
        operation={`${base}/runs`}
        path={pathOf(row)}
        onOpen={(run) => setAddress({ view: undefined, run: String(run['key']) }, false)}
        columns={[
          {
            title: 'Run',
            show: (run) => (
              <>
                <button
                  type="button"
                  className="as-link"
                  onClick={() => setAddress({ view: undefined, run: String(run['key']) }, false)}
                >
                  {runWords(run as unknown as Run)}
                </button>
                <span className="cell-sub mono">{String(run['key'])}</span>
              </>
            ),
          },
          { title: 'Users', isNumber: true, show: (run) => count(run['entries'] as number) },
          { title: 'Status', show: (run) => <Status value={String(run['status'])} /> },
          { title: 'Closed', show: (run) => <When at={run['closed_at'] as string | null} none="not yet" /> },
          {
            title: 'Ranks and rewards',
            show: (run) =>
              run['status'] === 'open' ? 'when it closes' : run['is_frozen'] ? 'final and given' : 'under way',
          },
        ]}
        empty={<Empty title="No runs yet">The first begins with the first score.</Empty>}
      />
    </Card>
  )
}

const Anomalies = ({ row }: { row: Row }) => (
  <Card title="Scores that stand out" flush>
    <Entries<Row>
      name="Anomalies"
      isInside
      operation={`${base}/anomalies`}
      path={pathOf(row)}
      keyOf={(one) => String((one['entry'] as Row)['app_user_id'])}
      columns={[
        {
          title: 'User',
          show: (one) => {
            const entry = one['entry'] as Row
            return <UserName id={entry['app_user_id'] as string} user={entry['user'] as { display_name: string }} />
          },
        },
        { title: 'Score', isNumber: true, show: (one) => count((one['entry'] as Row)['score'] as number) },
        { title: 'Rank', isNumber: true, show: (one) => count((one['entry'] as Row)['rank'] as number) },
        {
          title: 'Why',
          show: (one) =>
            (one['reasons'] as readonly string[])
              .map((reason) =>
                reason === 'score'
                  ? `the score is ${count(Math.round(Number(one['score_sigmas'])))} times the usual spread away`
                  : `one jump of ${count(Math.round(Number(one['jump_sigmas'])))} times the usual`,
              )
              .join(', '),
        },
      ]}
      empty={
        <Empty title="Nothing stands out">
          Scores that lie far beyond the others, or came in one jump of that size, are listed here. It needs ten users.
        </Empty>
      }
    />
  </Card>
)

const Settings = ({ row }: { row: Row }) => {
  const { rewards, source: _, ...rest } = row
  const prizes = rewards as readonly { from_rank: number; to_rank: number; reward: unknown }[]
  return (
    <div className="split">
      <Card title="Settings">
        <Facts
          facts={[
            ['Scores from', sourceWords(row)],
            ...factsOf(rest, (name) => ({ ...words[name], choices: { ...words[name]?.choices } })),
          ]}
        />
      </Card>
      <Card title="Rewards at the end of a run">
        {prizes.length === 0 ? (
          <Empty title="No rewards">“Edit” adds some, by rank.</Empty>
        ) : (
          <Facts
            facts={prizes.map(({ from_rank, to_rank, reward }) => [
              from_rank === to_rank ? `Rank ${from_rank}` : `Rank ${from_rank} to ${to_rank}`,
              rewardWords(reward),
            ])}
          />
        )}
      </Card>
    </div>
  )
}

const views = [
  ['now', 'Now'],
  ['runs', 'Runs'],
  ['settings', 'Settings'],
  ['anomalies', 'Anomalies'],
] as const
const shown: Readonly<Record<string, (props: { row: Row }) => ReactNode>> = {
  now: Now,
  runs: Runs,
  settings: Settings,
  anomalies: Anomalies,
}

const Board = ({ row }: { row: Row }) => {
  const [{ view = 'now' }] = useAddress<'view'>()
  const { data: runs } = useRuns(row)
  const open = runs?.find(({ status }) => status === 'open')
  const View = shown[view] ?? Now
  return (
    <Stack gap={0}>
      <Group gap="xs" mb="sm">
        <Badge variant="default">{sourceWords(row)}</Badge>
        <Badge variant="default">{words['scoring']?.choices?.[String(row['scoring'])]}</Badge>
        {open?.ends_at && (
          <span>
            This run ends <When at={open.ends_at} />
          </span>
        )}
      </Group>
      <Views label="Leaderboard" views={views} />
      <View row={row} />
    </Stack>
  )
}

const words: NonNullable<Kind['words']> = {
  name: { title: 'Name', help: 'What users see', section: 'The board' },
  key: { title: 'Key', help: 'How your app calls it', section: 'The board' },
  description: { section: 'The board' },
  source: { title: 'Scores come from', section: 'Scores', choices: sources },
  'source.value_property': { title: 'Property with the score', help: 'Each event counts 1 without one' },
  'source.event_name': { title: 'Event' },
  'source.filter': { title: 'Only events where' },
  scoring: {
    title: 'Several scores of a user',
    section: 'Scores',
    choices: { best: 'The best', sum: 'Their sum', last: 'The last', count: 'Their number' },
  },
  sort: { title: 'Who leads', section: 'Scores', choices: { desc: 'The highest', asc: 'The lowest' } },
  period: { title: 'Starts again', section: 'Runs', choices: periods },
  timezone: { section: 'Runs' },
  keep_runs: { section: 'Runs' },
  starts_at: { section: 'Runs' },
  ends_at: { section: 'Runs' },
  rewards: { title: 'Rewards', help: 'By rank, given when a run closes', section: 'Rewards' },
  segment_id: { section: 'Limits' },
  client_writable: { section: 'Limits' },
  min_score: { section: 'Limits' },
  max_score: { section: 'Limits' },
  max_per_minute: { section: 'Limits' },
  is_active: { section: 'Limits' },
}

const kind: Kind = {
  path: 'leaderboards',
  id: 'idOrKey',
  at: 'leaderboards',
  noun: 'leaderboard',
  plural: 'leaderboards',
  icon: Trophy,
  about: 'Rank users by a score, once or in runs of a day, a week or a month',
  empty: 'A board ranks users by what they do: points of a week, the fastest lap, the longest streak.',
  columns: [
    named('leaderboards'),
    { title: 'Scores from', show: sourceWords },
    { title: 'Starts again', show: (row) => periods[String(row['period'])] },
    { title: 'Users in this run', isNumber: true, show: (row) => <Participants row={row} /> },
    activeColumn,
  ],
  words,
  preset: { source: { type: 'event' }, scoring: 'sum', sort: 'desc', period: 'weekly' },
  hasNoFacts: true,
  actions: [
    {
      title: 'Close this run now',
      operation: 'POST /v1/admin/projects/{projectId}/leaderboards/{idOrKey}/close-run',
      verb: 'Close the run',
      said: 'The run is closed. Final ranks and rewards follow.',
      asks: () => 'Ranks become final, and rewards are given. The next run begins with its period.',
    },
    {
      title: 'Count again from events',
      operation: `POST ${rebuild}`,
      verb: 'Count again',
      said: 'The run is counted again in the background.',
      asks: () => 'The current run is counted again from stored events, by the rules as they are now.',
      isOffered: (row) => (row['source'] as Row)['type'] !== 'manual',
    },
  ],
  Buttons: ImportScores,
  Detail: Board,
}
export const { List, New, One } = pagesOf(kind)
