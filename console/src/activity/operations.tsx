import { Alert, Button, Group, MultiSelect, Progress, Select, Skeleton, Stack, Switch, Text } from '@mantine/core'
import { DateTimePicker } from '@mantine/dates'
import { useMutation, useQuery } from '@tanstack/react-query'
import { History, ListChecks } from 'lucide-react'
import { useState } from 'react'
import { cancelOperation, getOperation, replayEvents } from '../../../sdk/src/generated/admin.ts'
import { call, type Row } from '../api.ts'
import { Drawer } from '../parts/drawer.tsx'
import { List } from '../parts/list.tsx'
import { Facts, PageHead, useAddress, useProject } from '../parts/page.tsx'
import { count, counted, done, Empty, Failure, failed, useRefresh, When } from '../parts/states.tsx'
import { Id, Status } from '../parts/status.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { pairsOf } from './sentences.tsx'

type Operation = {
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
const isRunning = (status: string) => ['queued', 'running', 'waiting'].includes(status)
const lasted = ({ created_at, updated_at }: Operation): string => {
  const seconds = (new Date(updated_at).getTime() - new Date(created_at).getTime()) / 1000
  return seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`
}
const Done = ({ progress, status }: Operation) => {
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

const Cancel = ({ operation }: { operation: Operation }) => {
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

const One = ({ id }: { id: string }) => {
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

const targets = ['streaks', 'xp', 'achievements', 'challenges', 'leaderboards']

const ReplayForm = ({ onClose }: { onClose: () => void }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [, setAddress] = useAddress<'replay' | 'open'>()
  const [since, setSince] = useState<string | null>(() => new Date(Date.now() - 7 * 864e5).toISOString())
  const [chosen, setChosen] = useState<string[]>([])
  const [isTrial, setTrial] = useState(true)
  const work = useMutation({
    mutationFn: () =>
      call(replayEvents, {
        path,
        body: {
          since: new Date(since ?? 0).toISOString(),
          ...(chosen.length > 0 ? { targets: chosen } : {}),
          dry_run: isTrial,
        },
      }),
    onSuccess: async ({ data }) => {
      done(isTrial ? 'The trial runs.' : 'The replay runs.')
      await setAddress({ replay: undefined, open: (data as unknown as Operation).operation_id })
      await refresh()
    },
  })
  useUnsaved([since, chosen, isTrial], work)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        work.mutate()
      }}
    >
      <Stack gap="md">
        <Text size="sm" c="dimmed">
          Counts stored events again for what was defined later or became easier. It only adds, and gives no reward
          twice.
        </Text>
        <DateTimePicker
          label="Events since"
          required
          valueFormat="D MMM YYYY, HH:mm"
          value={since ? new Date(since) : null}
          onChange={setSince}
        />
        <MultiSelect
          label="For"
          description="All of them if nothing is chosen"
          data={targets}
          value={chosen}
          onChange={setChosen}
          clearable
        />
        <Switch
          label="Only try it"
          description="Shows what would change, and writes nothing"
          checked={isTrial}
          onChange={(event) => setTrial(event.currentTarget.checked)}
        />
        {work.error && <Failure error={work.error} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={work.isPending} disabled={!since}>
            {isTrial ? 'Try the replay' : 'Replay events'}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}

const Replay = () => {
  const [{ replay }, setAddress] = useAddress<'replay'>()
  const close = () => setAddress({ replay: undefined })
  return (
    <Drawer opened={replay === 'yes'} onClose={close} title="Replay events">
      {replay === 'yes' && <ReplayForm onClose={close} />}
    </Drawer>
  )
}

const statuses = ['queued', 'running', 'waiting', 'succeeded', 'failed', 'cancelled']

/** Work that takes longer than a request: how far it is, and what came of it. */
export const Page = () => {
  const [{ status, open }, setAddress] = useAddress<'status' | 'open' | 'replay'>()
  return (
    <>
      <PageHead
        title="Operations"
        about="Work in the background: how far it is, and what came of it"
        actions={
          <Button
            variant="default"
            leftSection={<History size={15} />}
            onClick={() => setAddress({ replay: 'yes' }, false)}
          >
            Replay events
          </Button>
        }
      />
      <Group mb="sm">
        <Select
          aria-label="Status"
          placeholder="All of them"
          clearable
          clearButtonProps={{ 'aria-label': 'Clear the status' }}
          data={statuses}
          value={status ?? null}
          onChange={(next) => setAddress({ status: next ?? undefined })}
          w={180}
        />
      </Group>
      <List<Operation>
        name="Operations"
        operation="GET /v1/admin/projects/{projectId}/operations"
        query={{ status }}
        every={4000}
        keyOf={({ operation_id }) => operation_id}
        onOpen={({ operation_id }) => setAddress({ open: operation_id }, false)}
        columns={[
          {
            title: 'What',
            show: (one) => (
              <>
                <button
                  type="button"
                  className="row-button"
                  onClick={() => setAddress({ open: one.operation_id }, false)}
                >
                  {typeWords(one.type)}
                </button>
                {one.failed_reason && <span className="cell-sub">{one.failed_reason}</span>}
              </>
            ),
          },
          { title: 'Status', show: (one) => <Status value={one.status} /> },
          { title: 'Done', show: (one) => <Done {...one} /> },
          { title: 'Began', show: (one) => <When at={one.created_at} /> },
          {
            title: 'Took',
            show: (one) => (isRunning(one.status) ? <Cancel operation={one} /> : lasted(one)),
          },
        ]}
        empty={
          <Empty
            icon={<ListChecks size={22} />}
            title={status ? 'None of that status' : 'Nothing ran yet'}
            action={
              status ? (
                <Button variant="default" onClick={() => setAddress({ status: undefined })}>
                  Show all
                </Button>
              ) : (
                <Button variant="default" onClick={() => setAddress({ replay: 'yes' }, false)}>
                  Replay events
                </Button>
              )
            }
          >
            Replays, backfills and other long work are listed here for 90 days.
          </Empty>
        }
      />
      <Drawer opened={open !== undefined} onClose={() => setAddress({ open: undefined })} title="Operation">
        {open && <One id={open} />}
      </Drawer>
      <Replay />
    </>
  )
}
