import { Group, Select, Stack } from '@mantine/core'
import { Medal } from 'lucide-react'
import type { ReactNode } from 'react'
import type { Row } from '../api.ts'
import { factsOf } from '../parts/facts.tsx'
import { ShortTable } from '../parts/list.tsx'
import { ListCard } from '../parts/list_card.tsx'
import { Card, Facts, useAddress, Views } from '../parts/page.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { UserName } from '../parts/users.tsx'
import { base, type Member, pathOf, pointsWords, type Run, type TierStats, tiersOf, useRuns, useStats } from './data.ts'

const Tiers = ({ row }: { row: Row }) => {
  const { data } = useStats(row)
  if (!data) return null
  return (
    <Card title="Tiers in this run" flush>
      <ShortTable<TierStats>
        name="Tiers in this run"
        rows={data.tiers}
        keyOf={({ tier_key }) => tier_key}
        columns={[
          { title: 'Tier', show: ({ tier_key }) => tier_key },
          { title: 'Users', isNumber: true, show: ({ users }) => count(users) },
          { title: 'Median points', isNumber: true, show: ({ median_points }) => median_points ?? '—' },
          { title: 'Least that goes up', isNumber: true, show: ({ promotion_cutoff }) => promotion_cutoff ?? '—' },
        ]}
      />
    </Card>
  )
}

const Members = ({ cohort }: { cohort: Row }) => (
  <ShortTable<Member>
    name={`Cohort of ${cohort['tier_key']}`}
    rows={cohort['entries'] as readonly Member[]}
    keyOf={({ app_user_id }) => app_user_id}
    columns={[
      {
        title: 'Rank and user',
        show: ({ rank, app_user_id }) => (
          <>
            <span className="rank">{count(rank)}</span>
            <UserName id={app_user_id} />
          </>
        ),
      },
      { title: 'Points', isNumber: true, show: ({ points }) => points },
      { title: 'Result', show: ({ result }) => <Status value={result} /> },
    ]}
  />
)

/** The cohorts of a run with their members in order; those of the open run are read again as points come. */
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
      <Tiers row={row} />
      <ListCard<Row>
        title="Ladders"
        actions={
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
        }
        operation={`GET ${base}/runs/{runKey}/cohorts`}
        path={{ ...pathOf(row), runKey: chosen.key }}
        query={{ tier_key: tier }}
        every={chosen.status === 'open' ? 5000 : 0}
        keyOf={(cohort) => String(cohort['id'])}
        columns={[
          { title: 'Tier', show: (cohort) => String(cohort['tier_key']) },
          { title: 'Users', isNumber: true, show: (cohort) => count(cohort['members'] as number) },
          { title: 'Begun', show: (cohort) => <When at={cohort['created_at'] as string} /> },
          { title: 'Members', show: (cohort) => <Members cohort={cohort} /> },
        ]}
        empty={<Empty title="Nobody is in this tier">Users enter it as they gain points.</Empty>}
      />
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
  const { points: _, tiers: __, rewards: ___, ...rest } = row
  return (
    <Card title="Settings">
      <Facts
        facts={[
          ['Points from', pointsWords(row)],
          ...tiersOf(row).map(
            ({ name, promote_count, relegate_count }) =>
              [name, `${promote_count} go up, ${relegate_count} go down`] as const,
          ),
          ...factsOf(rest),
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
