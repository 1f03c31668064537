import { SegmentedControl, Skeleton, Stack } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getUsage } from '../../../sdk/src/generated/admin.ts'
import { call, callAny } from '../api.ts'
import { Chart, Figure, type Point } from '../parts/chart.tsx'
import { PageHead, useAddress, useProject } from '../parts/page.tsx'
import { count, Failure } from '../parts/states.tsx'
import { changeOf, dayBefore, sumOf } from './days.ts'
import { Latest, Names } from './events.tsx'
import { Needs } from './needs.tsx'
import { Start, useSteps } from './start.tsx'

/** What users did, and what needs the developer. */
export const Page = () => {
  const { path } = useProject()
  const [{ days = '30' }, setAddress] = useAddress<'days'>()
  const usage = useQuery({
    queryKey: ['usage', path.projectId, days],
    queryFn: () => call(getUsage, { path, query: { from: dayBefore(Number(days) - 1), to: dayBefore(0) } }),
    refetchInterval: 60_000,
    placeholderData: (before) => before,
  })
  const daily = useQuery({
    queryKey: ['daily', path.projectId, days],
    queryFn: async () =>
      (
        (
          await callAny('GET /v1/admin/projects/{projectId}/events/daily', {
            path,
            query: { from: dayBefore(Number(days) - 1), to: dayBefore(0) },
          })
        ).data as { series: Readonly<Record<'events' | 'active_users', readonly Point[]>> }
      ).series,
    refetchInterval: 60_000,
    placeholderData: (before) => before,
  })
  const steps = useSteps()
  // a project that has users, events and something to show is not new, whatever its keys say
  const isNew = steps?.slice(1).some(({ isDone }) => !isDone) ?? false
  const series = usage.data?.data.series as Readonly<Record<string, readonly Point[]>> | undefined
  // events and users by the day on which something happened; requests by the day on which they came
  const at = (name: string): readonly Point[] =>
    (name === 'events' || name === 'active_users' ? daily.data?.[name] : series?.[name]) ?? []
  const figure = (title: string, name: string, value: string, isGoodUp = true) => (
    <Figure
      title={title}
      value={value}
      change={changeOf(at(name))}
      about={changeOf(at(name)) === null ? `in ${days} days` : 'on the days before'}
      course={at(name).map((point) => point.value)}
      isGoodUp={isGoodUp}
    />
  )
  return (
    <>
      <PageHead
        title="Overview"
        about="What users did, and what needs you"
        actions={
          <SegmentedControl
            size="xs"
            aria-label="Days"
            value={days}
            onChange={(next) => setAddress({ days: next })}
            data={['7', '30', '90'].map((value) => ({ value, label: `${value} days` }))}
          />
        }
      />
      {usage.error && <Failure error={usage.error} onRetry={usage.refetch} />}
      <Stack gap="md">
        {steps && isNew && <Start steps={steps} />}
        {series && daily.data ? (
          <div className="cards">
            {figure('Active users today', 'active_users', count(at('active_users').at(-1)?.value ?? 0))}
            {figure('Events', 'events', count(sumOf(at('events'))))}
            {figure('Requests', 'api_requests', count(sumOf(at('api_requests'))))}
            {figure('Failed requests', 'failed_requests', count(sumOf(at('failed_requests'))), false)}
          </div>
        ) : (
          !usage.error && !daily.error && <Skeleton h={98} />
        )}
        <div className="split">
          <div className="column">
            <Chart title="Active users" points={daily.data?.active_users} error={daily.error} onRetry={daily.refetch} />
            <Chart
              title="Events"
              kind="bar"
              points={daily.data?.events}
              error={daily.error}
              onRetry={daily.refetch}
              height={200}
            >
              <Names />
            </Chart>
          </div>
          <div className="column">
            <Needs />
            <Latest />
          </div>
        </div>
      </Stack>
    </>
  )
}
