import type { Row } from '../api.ts'
import { Bars, Figure } from '../parts/chart.tsx'
import { Days } from '../parts/days.tsx'
import { count } from '../parts/states.tsx'
import { base, pathOf, periods, useStats } from './data.ts'
import { Users } from './users.tsx'

/** How a streak goes: figures, days, lengths, and its users. */
export const Detail = ({ row }: { row: Row }) => {
  const { data: stats, error, refetch } = useStats(row)
  const about = stats?.is_estimate ? `about, ± ${count(stats.margin)}` : undefined
  const figure = (title: string, value: number | undefined, note = about) => (
    <Figure title={title} value={count(value)} {...(note ? { about: note } : {})} />
  )
  return (
    <>
      <div className="cards">
        {figure('Active', stats?.active)}
        {figure('At risk', stats?.at_risk, 'the period ends soon')}
        {figure('Broken', stats?.broken_7d, 'in 7 days')}
        {figure('Freezes used', stats?.freezes_used_7d, 'in 7 days')}
      </div>
      <Days
        operation={`GET ${base}/daily`}
        path={pathOf(row)}
        charts={[
          ['kept', 'Kept each day'],
          ['broken', 'Broken each day', 'As it happened: imported events break no streak.'],
        ]}
      />
      <Bars
        title="How long streaks are"
        of="Users"
        by={`Length in ${periods[String(row['period'])]}s`}
        bars={stats?.distribution.map(({ bucket, users }) => ({ label: bucket, value: users }))}
        error={error}
        onRetry={refetch}
      />
      <Users row={row} />
    </>
  )
}
