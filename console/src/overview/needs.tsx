import { Group, Skeleton, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { CircleCheck, ShieldAlert, TriangleAlert } from 'lucide-react'
import type { ReactNode } from 'react'
import { listModerationQueue, listOperations } from '../../../sdk/src/generated/admin.ts'
import { call, callAny } from '../api.ts'
import { Card, ProjectLink, useProject } from '../parts/page.tsx'
import { counted, Failure } from '../parts/states.tsx'
import { dayBefore } from './days.ts'

/** What waits for the developer, and what failed. */
export const Needs = () => {
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
  const asked = [queue, operations, deliveries]
  const failed = asked.filter(({ data, error }) => error && !data)
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
      {failed[0] && (
        <Failure error={failed[0].error} onRetry={() => Promise.all(failed.map(({ refetch }) => refetch()))} />
      )}
      <Stack gap={10} className="links">
        {lines.length > 0 ? (
          lines
        ) : failed.length > 0 ? null : asked.some(({ isPending }) => isPending) ? (
          <Skeleton h={20} />
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
