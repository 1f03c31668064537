import { Alert, Button, Group, Progress, Skeleton, Stack, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { cancelOperation, getOperation } from '../../../sdk/src/generated/admin.ts'
import { call, type Row } from '../api.ts'
import { Facts, useProject } from '../parts/page.tsx'
import { count, counted, done, Failure, failed, useRefresh, When } from '../parts/states.tsx'
import { Id, Status } from '../parts/status.tsx'
import { pairsOf } from './sentences.tsx'

export type Operation = {
  readonly operation_id: string
  readonly type: string
  readonly status: string
  readonly progress: { readonly done: number; readonly total: number } | null
  readonly result: unknown
  readonly failed_reason: string | null
  readonly created_at: string
  readonly updated_at: string
}

/** `events.replay` as `Replay of events`. */
export const typeWords = (type: string): string => {
  const [area = '', verb = ''] = type.split('.')
  if (verb === '') return area.replace(/_/g, ' ').replace(/^./, (first) => first.toUpperCase())
  const what = verb.replace(/_/g, ' ').replace(/^./, (first) => first.toUpperCase())
  return `${what} of ${area.replace(/_/g, ' ')}`
}

/** Whether an operation is not through yet. */
export const isRunning = (status: string) => ['queued', 'running', 'waiting'].includes(status)

/** How long an operation took. */
export const lasted = ({ created_at, updated_at }: Operation): string => {
  const seconds = (new Date(updated_at).getTime() - new Date(created_at).getTime()) / 1000
  return seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`
}

/** How far an operation is, as a bar while it runs. */
export const Done = ({ progress, status }: Operation) => {
  if (!progress) return <>—</>
  const share = progress.total === 0 ? 100 : Math.round((progress.done / progress.total) * 100)
  if (!isRunning(status)) return <>{`${count(progress.done)} of ${count(progress.total)}`}</>
  return (
    <Group gap={8} wrap="nowrap">
      <Progress value={share} w={100} aria-label={`${share} % done`} />
      <span>{share} %</span>
    </Group>
  )
}

/** Cancels an operation that does not run yet. */
export const Cancel = ({ operation }: { operation: Operation }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const work = useMutation({
    mutationFn: () => call(cancelOperation, { path: { ...path, operationId: operation.operation_id } }),
    onSuccess: async () => {
      done('It is cancelled.')
      await refresh()
    },
    onError: failed,
  })
  if (!['queued', 'waiting'].includes(operation.status)) return null
  return (
    <Button size="compact-sm" variant="default" loading={work.isPending} onClick={() => work.mutate()}>
      Cancel
    </Button>
  )
}

/** What came of a replay: how many would change, or changed, in each area. */
const Result = ({ result }: { result: unknown }) => {
  const row = (result ?? {}) as Row
  const targets = row['targets'] as Readonly<Record<string, Row>> | undefined
  if (!targets) {
    const pairs = pairsOf(row)
    return pairs.length > 0 ? <Facts facts={pairs.map(([name, value]) => [name.replace(/[_.]/g, ' '), value])} /> : null
  }
  return (
    <Stack gap="sm">
      {row['dry_run'] === true && <Alert color="gray">It was a trial: nothing was written.</Alert>}
      <Facts
        facts={Object.entries(targets).map(([area, found]) => [
          area.replace(/^./, (first) => first.toUpperCase()),
          `${counted(Number(found['changes']), 'change')} for ${counted(Number(found['users']), 'user')}`,
        ])}
      />
    </Stack>
  )
}

/** One operation: how far it is, and what came of it. */
export const OperationFacts = ({ id }: { id: string }) => {
  const { path } = useProject()
  const { data, error, refetch } = useQuery({
    queryKey: ['operation', path.projectId, id],
    queryFn: async () =>
      (await call(getOperation, { path: { ...path, operationId: id } })).data as unknown as Operation,
    refetchInterval: ({ state }) => (state.data && !isRunning(state.data.status) ? false : 1500),
  })
  if (error) return <Failure error={error} onRetry={refetch} />
  if (!data) return <Skeleton h={200} />
  return (
    <Stack gap="lg">
      <Group justify="space-between">
        <Text fw={600} fz={17}>
          {typeWords(data.type)}
        </Text>
        <Group gap="xs">
          <Status value={data.status} />
          <Cancel operation={data} />
        </Group>
      </Group>
      {data.failed_reason && <Alert color="red">{data.failed_reason}</Alert>}
      <Facts
        facts={[
          ['Done', <Done key="done" {...data} />],
          ['Began', <When key="began" at={data.created_at} />],
          ...(isRunning(data.status) ? [] : [['Took', lasted(data)] as const]),
          ['Id', <Id key="id" value={data.operation_id} />],
        ]}
      />
      <Result result={data.result} />
    </Stack>
  )
}
