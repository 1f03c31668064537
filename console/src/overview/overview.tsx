import { Badge, Group, SegmentedControl, Skeleton, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { CircleCheck, ShieldAlert, TriangleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import {
  getUsage,
  listEventNames,
  listEvents,
  listModerationQueue,
  listOperations,
} from '../../../sdk/src/generated/admin.ts'
import { call, callAny } from '../api.ts'
import { Chart, Figure, type Point } from '../parts/chart.tsx'
import { Card, PageHead, ProjectLink, useAddress, useProject } from '../parts/page.tsx'
import { count, counted, Failure, When } from '../parts/states.tsx'
import { Start, useSteps } from './start.tsx'

const dayBefore = (days: number) => new Date(Date.now() - days * 864e5).toISOString().slice(0, 10)
const sumOf = (points: readonly Point[]) => points.reduce((sum, { value }) => sum + value, 0)

/** The change from the first half of the days to the second, in per cent; the current day is in neither. */
const changeOf = (points: readonly Point[]): number | null => {
  const whole = points.slice(0, -1)
  const half = Math.floor(whole.length / 2)
  const [before, after] = [sumOf(whole.slice(0, half)), sumOf(whole.slice(-half))]
  return before === 0 ? null : Math.round(((after - before) / before) * 100)
}

const Needs = () => {
  const { path } = useProject()
  const queue = useQuery({
    queryKey: ['queue', path.projectId],
    queryFn: () => call(listModerationQueue, { path, query: { status: 'pending', limit: 1 } }),
  })
  const operations = useQuery({
    queryKey: ['operations', path.projectId],
    queryFn: () => call(listOperations, { path, query: { limit: 20 } }),
    refetchInterval: 15_000,
  })
  const deliveries = useQuery({
    queryKey: ['failed deliveries', path.projectId],
    queryFn: async () => {
      const of = async (status: 'failed' | 'dlq') => {
        const query = { status, since: `${dayBefore(7)}T00:00:00Z`, limit: 50 }
        return (await callAny('GET /v1/admin/projects/{projectId}/webhooks/deliveries', { path, query })).data
      }
      return (await Promise.all([of('failed'), of('dlq')])) as readonly (readonly unknown[])[]
    },
    refetchInterval: 30_000,
  })
  const [refused = [], givenUp = []] = deliveries.data ?? []
  const undelivered = refused.length + givenUp.length
  const failedOnes = (operations.data?.data ?? []).filter(({ status }) => status === 'failed')
  const running = (operations.data?.data ?? []).filter(({ status }) => status === 'running' || status === 'queued')
  const waiting = queue.data?.total ?? 0
  const lines: ReactNode[] = []
  if (waiting > 0)
    lines.push(
      <Group key="queue" gap={8} wrap="nowrap">
        <ShieldAlert size={16} color="var(--warn)" aria-hidden />
        <ProjectLink to="moderation">{counted(waiting, 'item')} to moderate</ProjectLink>
      </Group>,
    )
  if (failedOnes.length > 0)
    lines.push(
      <Group key="failed" gap={8} wrap="nowrap">
        <TriangleAlert size={16} color="var(--bad)" aria-hidden />
        <ProjectLink to="operations">{counted(failedOnes.length, 'operation')} failed</ProjectLink>
      </Group>,
    )
  if (undelivered > 0)
    lines.push(
      <Group key="deliveries" gap={8} wrap="nowrap">
        <TriangleAlert size={16} color="var(--bad)" aria-hidden />
        <ProjectLink to="webhooks/deliveries" search={{ status: refused.length > 0 ? 'failed' : 'dlq' }}>
          {undelivered >= 50 ? '50 or more deliveries' : counted(undelivered, 'delivery', 'deliveries')} of webhooks
          failed
        </ProjectLink>
      </Group>,
    )
  if (running.length > 0)
    lines.push(
      <Text key="running" size="sm" c="dimmed">
        {counted(running.length, 'operation')} running
      </Text>,
    )
  return (
    <Card title="What needs you">
      <Stack gap={10} className="links">
        {lines.length > 0 ? (
          lines
        ) : (
          <Group gap={8} wrap="nowrap">
            <CircleCheck size={16} color="var(--good)" aria-hidden />
            <Text size="sm" c="dimmed">
              Nothing waits, and nothing failed
            </Text>
          </Group>
        )}
      </Stack>
    </Card>
  )
}

const Latest = () => {
  const { path } = useProject()
  const { data } = useQuery({
    queryKey: ['latest', path.projectId],
    queryFn: () => call(listEvents, { path, query: { limit: 9 } }),
    refetchInterval: 5000,
  })
  return (
    <Card
      title="Latest events"
      actions={
        <Badge variant="dot" color="leaf">
          live
        </Badge>
      }
    >
      <Stack gap={8} className="links">
        {data?.data.length === 0 && (
          <Text size="sm" c="dimmed">
            Events appear here as your app sends them.
          </Text>
        )}
        {data?.data.map((event) => (
          <Group key={event.id} justify="space-between" wrap="nowrap" gap="xs">
            <ProjectLink to={event.app_user_id ? `users/${event.app_user_id}` : 'events'}>
              {event.event_name}
            </ProjectLink>
            <Text size="xs" c="dimmed" component="span" className="nowrap">
              <When at={event.occurred_at} />
            </Text>
          </Group>
        ))}
      </Stack>
    </Card>
  )
}

const Names = () => {
  const { path } = useProject()
  const { data } = useQuery({
    queryKey: ['event names', path.projectId],
    queryFn: () => call(listEventNames, { path, query: { limit: 6 } }),
  })
  if (!data || data.data.length === 0) return null
  return (
    <table className="table" aria-label="Events of 30 days by name">
      <thead>
        <tr>
          <th scope="col">Event</th>
          <th scope="col" data-number>
            30 days
          </th>
          <th scope="col" data-number>
            Users
          </th>
        </tr>
      </thead>
      <tbody>
        {data.data.map((name) => (
          <tr key={name.event_name}>
            <td>
              <ProjectLink to="events" search={{ event: name.event_name }}>
                {name.event_name}
              </ProjectLink>
            </td>
            <td data-number>{count(name.count_30d)}</td>
            <td data-number>{count(name.users_30d)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

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
          <Skeleton h={98} />
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
