import { Button, Group, Select, Stack, Text } from '@mantine/core'
import { Medal } from 'lucide-react'
import type { ReactNode } from 'react'
import type { Row } from '../api.ts'
import { factsOf } from '../parts/facts.tsx'
import { rewardWords } from '../parts/form/reward.ts'
import { type Column, ShortTable, useRows } from '../parts/list.tsx'
import { ListCard } from '../parts/list_card.tsx'
import { Card, Facts, useAddress, Views } from '../parts/page.tsx'
import { count, counted, Empty, Failure, Rows, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { UserName } from '../parts/users.tsx'
import {
  base,
  type LeagueReward,
  live,
  type Member,
  meanings,
  pathOf,
  pointsWords,
  type Run,
  type TierStats,
  tierName,
  tiersOf,
  useRuns,
  useStats,
  words,
} from './data.ts'

/** The tiers of the open run. */
const Tiers = ({ row }: { row: Row }) => {
  const { data } = useStats(row)
  if (!data) return null
  return (
    <Card title="Tiers now" flush>
      <ShortTable<TierStats>
        name="Users by tier"
        rows={data.tiers}
        keyOf={({ tier_key }) => tier_key}
        columns={[
          { title: 'Tier', show: ({ tier_key }) => tierName(row, tier_key) },
          { title: 'Users', isNumber: true, show: ({ users }) => count(users) },
          { title: 'Median points', isNumber: true, show: ({ median_points }) => median_points ?? '—' },
          { title: 'Least that goes up', isNumber: true, show: ({ promotion_cutoff }) => promotion_cutoff ?? '—' },
        ]}
      />
    </Card>
  )
}

/** One cohort with its members in order. */
const Cohort = ({ title, cohort, isOpen }: { title: string; cohort: Row; isOpen: boolean }) => (
  <Card title={title} flush>
    <Text size="sm" c="dimmed" px="md" pb="xs">
      {counted(cohort['members'] as number, 'user')}, begun <When at={cohort['created_at'] as string} />
    </Text>
    <ShortTable<Member>
      name={`Ladder of ${title}`}
      rows={cohort['entries'] as readonly Member[]}
      keyOf={({ app_user_id }) => app_user_id}
      columns={[
        {
          title: 'Rank and user',
          show: ({ rank, app_user_id }) => (
            <span>
              <span className="rank">{rank === null ? '—' : count(rank)}</span>
              <UserName id={app_user_id} />
            </span>
          ),
        },
        { title: 'Points', isNumber: true, show: ({ points }) => points },
        ...(isOpen ? [] : [resultColumn]),
      ]}
    />
  </Card>
)

const resultColumn: Column<Member> = {
  title: 'Result',
  show: ({ result }) => <Status value={result} meaning={meanings[result] ?? 'none'} />,
}

type CohortsProps = { readonly row: Row; readonly run: Run; readonly tier: string | undefined }

/** The cohorts of a run; those of the open one are read again as points come. */
const Cohorts = ({ row, run, tier }: CohortsProps) => {
  const { list, rows } = useRows<Row>({
    operation: `GET ${base}/runs/{runKey}/cohorts`,
    path: { ...pathOf(row), runKey: run.key },
    query: { tier_key: tier },
    every: run.status === 'open' ? live : 0,
  })
  /** Which cohort of its tier it is. */
  const numberOf = (at: number) =>
    rows.slice(0, at + 1).filter((one) => one['tier_key'] === rows[at]?.['tier_key']).length
  if (list.error && rows.length === 0) return <Failure error={list.error} onRetry={list.refetch} />
  if (list.isPending) return <Rows count={3} height={60} />
  if (rows.length === 0)
    return (
      <section className="card">
        <Empty title="Nobody is in this tier">Users enter it as they gain points.</Empty>
      </section>
    )
  return (
    <>
      {rows.map((cohort, at) => (
        <Cohort
          key={String(cohort['id'])}
          cohort={cohort}
          isOpen={run.status === 'open'}
          title={`${tierName(row, cohort['tier_key'] as string)}, cohort ${numberOf(at)}`}
        />
      ))}
      {list.hasNextPage && (
        <Group>
          <Button variant="default" size="xs" loading={list.isFetchingNextPage} onClick={() => list.fetchNextPage()}>
            Show more
          </Button>
        </Group>
      )}
    </>
  )
}

/** A run of the league: its tiers, and the ladder of each cohort. */
const Ladder = ({ row }: { row: Row }) => {
  const [{ run, tier }, setAddress] = useAddress<'run' | 'tier'>()
  const { data: runs } = useRuns(row)
  const chosen = runs?.find(({ key }) => key === run) ?? runs?.[0]
  if (!runs) return null
  if (!chosen)
    return (
      <Empty icon={<Medal size={22} />} title="Nobody is in this league yet">
        Users enter a run as they gain points.
      </Empty>
    )
  return (
    <Stack gap="md">
      {chosen.status === 'open' && <Tiers row={row} />}
      <Group gap="xs">
        <Select
          size="xs"
          aria-label="Run"
          data={runs.map(({ key, status }) => ({ value: key, label: status === 'open' ? `${key} (now)` : key }))}
          value={chosen.key}
          allowDeselect={false}
          onChange={(next) => setAddress({ run: next ?? undefined })}
        />
        <Select
          size="xs"
          aria-label="Tier"
          placeholder="All tiers"
          clearable
          data={tiersOf(row).map(({ key, name }) => ({ value: key, label: name }))}
          value={tier ?? null}
          onChange={(next) => setAddress({ tier: next ?? undefined })}
        />
      </Group>
      <Cohorts row={row} run={chosen} tier={tier} />
    </Stack>
  )
}

const Runs = ({ row }: { row: Row }) => (
  <ListCard<Run>
    title="Runs"
    operation={`GET ${base}/runs`}
    path={pathOf(row)}
    keyOf={({ key }) => key}
    columns={[
      { title: 'Run', show: ({ key }) => <span className="mono">{key}</span> },
      { title: 'Users', isNumber: true, show: ({ members }) => count(members) },
      { title: 'Cohorts', isNumber: true, show: ({ cohorts }) => count(cohorts) },
      { title: 'Status', show: ({ status }) => <Status value={status} /> },
      { title: 'Ends', show: ({ ends_at }) => <When at={ends_at} /> },
      {
        title: 'Results and rewards',
        show: ({ status, is_settled }) =>
          status === 'open' ? 'when it closes' : is_settled ? 'final and given' : 'under way',
      },
    ]}
    empty={<Empty title="No runs yet">The first begins with the first points.</Empty>}
  />
)

const Settings = ({ row }: { row: Row }) => {
  const { points: _, tiers: __, rewards, ...rest } = row
  return (
    <Card title="Settings">
      <Facts
        facts={[
          ['Points from', pointsWords(row)],
          ...tiersOf(row).map(
            ({ name, promote_count, relegate_count }) =>
              [name, `${promote_count} go up, ${relegate_count} go down`] as const,
          ),
          ...(rewards as readonly LeagueReward[]).map(
            ({ tier_key, from_rank, to_rank, reward }) =>
              [
                `${tierName(row, tier_key)}, ${from_rank === to_rank ? `rank ${from_rank}` : `ranks ${from_rank} to ${to_rank}`}`,
                rewardWords(reward),
              ] as const,
          ),
          ...factsOf(rest, (name) => words[name] ?? {}),
        ]}
      />
    </Card>
  )
}

const views = [
  ['ladder', 'Ladders'],
  ['runs', 'Runs'],
  ['settings', 'Settings'],
] as const
const shown: Readonly<Record<string, (props: { row: Row }) => ReactNode>> = {
  ladder: Ladder,
  runs: Runs,
  settings: Settings,
}

/** A league in its views. */
export const League = ({ row }: { row: Row }) => {
  const [{ view = 'ladder' }] = useAddress<'view'>()
  const View = shown[view] ?? Ladder
  return (
    <Stack gap={0}>
      <Views label="League" views={views} />
      <View row={row} />
    </Stack>
  )
}
