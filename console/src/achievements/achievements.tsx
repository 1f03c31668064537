import { useQuery } from '@tanstack/react-query'
import { Award } from 'lucide-react'
import { callAny, type Row } from '../api.ts'
import { Bars, Figure } from '../parts/chart.tsx'
import { Days } from '../parts/days.tsx'
import { activeColumn, named } from '../parts/definitions/columns.tsx'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { criteriaWords } from '../parts/form/criteria.ts'
import { List as Entries } from '../parts/list.tsx'
import { Card, useProject } from '../parts/page.tsx'
import { RowActions } from '../parts/row_actions.tsx'
import { Compared, Simulate } from '../parts/simulate.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { Cell, useAnswer } from '../parts/stats.tsx'
import { Status } from '../parts/status.tsx'
import { UserName } from '../parts/users.tsx'

const all = '/v1/admin/projects/{projectId}/achievements'
const base = `${all}/{achievementId}`
type Unlocks = { readonly id: string; readonly unlocks: number; readonly unlocks_7d: number; readonly rate: number }
type DryRun = {
  readonly users_now: number
  readonly users_30d_ago_estimate: number | null
  readonly is_estimate: boolean
  readonly margin: number
  readonly distribution: readonly { readonly bucket: string; readonly users: number }[]
}

const useUnlocks = (id: unknown) => {
  const { data, ...rest } = useAnswer<{ achievements: readonly Unlocks[] }>(`GET ${all}/stats`)
  return { ...rest, data: data?.achievements.find((one) => one.id === id) }
}
const percent = (rate: number) => `${count(Math.round(rate * 100))} %`

const UnlockCell = ({ row, show }: { row: Row; show: (of: Unlocks) => string }) => (
  <Cell answer={useUnlocks(row['id'])} show={show} />
)

const Users = ({ row }: { row: Row }) => (
  <Card title="Who has it" flush>
    <Entries<Row>
      name="Users"
      isInside
      operation={`GET ${base}/users`}
      path={{ achievementId: String(row['id']) }}
      keyOf={(one) => String(one['app_user_id'])}
      columns={[
        {
          title: 'User',
          show: (one) => (
            <UserName id={one['app_user_id'] as string} user={one['app_users'] as { display_name: string } | null} />
          ),
        },
        { title: 'Unlocked', show: (one) => <When at={one['unlocked_at'] as string} /> },
        {
          title: 'By',
          show: (one) => (
            <Status
              value={
                { criteria: 'reached it', grant: 'given', backfill: 'had it already', reward: 'reward' }[
                  String(one['source'])
                ] ?? String(one['source'])
              }
              meaning="none"
            />
          ),
        },
        {
          title: 'Actions',
          isNumber: true,
          show: (one) => <Revoke row={row} one={one} />,
        },
      ]}
      empty={
        <Empty icon={<Award size={22} />} title="Nobody has it yet">
          It unlocks with {criteriaWords(row['criteria'])}.
        </Empty>
      }
    />
  </Card>
)

const Revoke = ({ row, one }: { row: Row; one: Row }) => {
  const { path: project } = useProject()
  const body = { app_user_id: one['app_user_id'] }
  return (
    <RowActions
      isQuiet
      row={one}
      path={{ achievementId: String(row['id']) }}
      actions={[
        {
          title: 'Take it away',
          operation: `POST ${base}/revoke`,
          verb: 'Take it away',
          said: 'The achievement is taken away.',
          body,
          asks: () => 'The user loses the achievement and keeps the XP. It unlocks again when the target is next met.',
          undo: () => callAny(`POST ${base}/grant`, { path: { ...project, achievementId: row['id'] }, body }),
        },
      ]}
    />
  )
}

const Detail = ({ row }: { row: Row }) => {
  const { path } = useProject()
  const unlocks = useUnlocks(row['id'])
  const run = useQuery({
    queryKey: ['dry run', path.projectId, row['id'], row['criteria']],
    queryFn: async () => {
      const { data } = await callAny(`POST ${base}/dry-run`, { path: { ...path, achievementId: row['id'] }, body: {} })
      return data as DryRun
    },
  })
  return (
    <>
      <div className="cards">
        <Figure title="Unlocked" value={count(unlocks.data?.unlocks)} about="users, of all time" />
        <Figure title="In 7 days" value={count(unlocks.data?.unlocks_7d)} about="users" />
        <Figure
          title="Share of users"
          value={unlocks.data ? percent(unlocks.data.rate) : '—'}
          about={`pays ${count(row['xp_reward'] as number)} XP`}
        />
      </div>
      <Days
        operation={`GET ${all}/daily`}
        query={{ achievement_id: String(row['id']) }}
        charts={[['unlocked', 'Unlocked each day']]}
      />
      <Bars
        title="How near users are"
        of="Users"
        by="Share of the target"
        bars={run.data?.distribution.map(({ bucket, users }) => ({ label: bucket.replace('%', ' %'), value: users }))}
        error={run.error}
        onRetry={run.refetch}
      />
      <Users row={row} />
    </>
  )
}

const SimulateCriteria = ({ row }: { row: Row }) => {
  const { data: unlocks } = useUnlocks(row['id'])
  return (
    <Simulate
      title={`Simulate “${row['name']}”`}
      about="Who would have it under other criteria. Nothing is written."
      operation={`POST ${base}/dry-run`}
      path={{ achievementId: String(row['id']) }}
      preset={{ criteria: row['criteria'] }}
      words={{ criteria: { title: 'Criteria' } }}
    >
      {(result) => {
        const run = result as unknown as DryRun
        return (
          <Card title="What comes of it">
            <Compared
              heads={['As it is', 'Simulated']}
              rows={[
                ['Users who have it', count(unlocks?.unlocks), count(run.users_now)],
                ['A month ago', '', count(run.users_30d_ago_estimate)],
              ]}
            />
          </Card>
        )
      }}
    </Simulate>
  )
}

const kind: Kind = {
  path: 'achievements',
  id: 'achievementId',
  at: 'achievements',
  noun: 'achievement',
  plural: 'achievements',
  icon: Award,
  about: 'Unlock once, when a value of a user reaches a target',
  empty: 'An achievement unlocks once, such as after ten lessons, and can pay XP.',
  columns: [
    named('achievements'),
    { title: 'Unlocks with', show: (row) => criteriaWords(row['criteria']) },
    { title: 'XP', isNumber: true, show: (row) => count(row['xp_reward'] as number) },
    { title: 'Users', isNumber: true, show: (row) => <UnlockCell row={row} show={(of) => count(of.unlocks)} /> },
    { title: '7 days', isNumber: true, show: (row) => <UnlockCell row={row} show={(of) => count(of.unlocks_7d)} /> },
    { title: 'Share', isNumber: true, show: (row) => <UnlockCell row={row} show={(of) => percent(of.rate)} /> },
    activeColumn,
  ],
  words: {
    name: { section: 'The achievement' },
    key: { section: 'The achievement' },
    description: { section: 'The achievement' },
    icon_url: { title: 'Picture', help: 'The address of an image', section: 'The achievement' },
    criteria: { title: 'Unlocks with', section: 'When it unlocks' },
    xp_reward: { title: 'XP', help: 'Paid once', section: 'Reward and list' },
    is_hidden: { title: 'Hidden until it is unlocked', section: 'Reward and list' },
    sort_order: { title: 'Place in the list', section: 'Reward and list' },
    is_active: { title: 'Active', section: 'Reward and list' },
  },
  actions: [
    {
      title: 'Give it to a user',
      operation: `POST ${base}/grant`,
      verb: 'Give it',
      said: 'The achievement is given.',
      words: { app_user_id: { title: 'User', help: 'Without its XP' } },
    },
    {
      title: 'Unlock for all who qualify',
      operation: `POST ${base}/backfill`,
      verb: 'Unlock for all',
      said: 'It unlocks in the background for all who qualify.',
      words: { notify: { title: 'Send webhooks and pushes', help: 'As if users had just reached it' } },
    },
  ],
  Detail,
  Buttons: SimulateCriteria,
}
export const { List, New, One } = pagesOf(kind)
