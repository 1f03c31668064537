import { Button, Group, SegmentedControl, Stack, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Send } from 'lucide-react'
import { getWebhookDelivery, replayWebhookDelivery } from '../../../sdk/src/generated/admin.ts'
import type { WebhookDelivery } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'
import { Drawer } from '../parts/drawer.tsx'
import { List } from '../parts/list.tsx'
import { Facts, useAddress, useProject } from '../parts/page.tsx'
import { RowButton } from '../parts/row_button.tsx'
import { count, done, Empty, Failure, failed, useRefresh, When } from '../parts/states.tsx'
import { Id, Status } from '../parts/status.tsx'

const meanings = { delivered: 'good', pending: 'warn', failed: 'bad', dlq: 'bad' } as const
const words = { delivered: 'delivered', pending: 'on its way', failed: 'failed', dlq: 'given up' } as const

/** Why an attempt failed, as people say it. */
const reasonOf = ({ attempts }: WebhookDelivery): string => {
  const last = attempts.at(-1)
  if (!last) return 'Not tried yet'
  if (last.error) return last.error.replace(/_/g, ' ')
  return last.status_code ? `The receiver answered ${last.status_code}` : 'No answer'
}

const Attempts = ({ delivery }: { delivery: WebhookDelivery }) => (
  <Stack gap="md">
    <Facts
      facts={[
        ['Event', delivery.event_name],
        [
          'Status',
          <Status
            key="status"
            value={words[delivery.status as keyof typeof words] ?? delivery.status}
            meaning={meanings[delivery.status as keyof typeof meanings] ?? 'none'}
          />,
        ],
        ['Why', delivery.status === 'delivered' ? undefined : reasonOf(delivery)],
        ['Next attempt', delivery.next_attempt_at ? <When key="next" at={delivery.next_attempt_at} /> : undefined],
        ['Idempotency key', <Id key="id" value={delivery.idempotency_key} />],
      ]}
    />
    <table className="table" aria-label="Attempts">
      <thead>
        <tr>
          <th scope="col">Attempt</th>
          <th scope="col">When</th>
          <th scope="col">Answer</th>
          <th scope="col" data-number>
            Took
          </th>
        </tr>
      </thead>
      <tbody>
        {delivery.attempts.map(({ n, at, status_code, error, duration_ms }) => (
          <tr key={n}>
            <th scope="row">{n}</th>
            <td>
              <When at={at} />
            </td>
            <td>{status_code ?? error?.replace(/_/g, ' ') ?? 'none'}</td>
            <td data-number>{count(duration_ms)} ms</td>
          </tr>
        ))}
      </tbody>
    </table>
  </Stack>
)

/** Deliveries of one webhook or of several, with the reason of each failure; a row opens its attempts. */
export const DeliveryList = ({ operation, path }: { operation: string; path?: Readonly<Record<string, string>> }) => {
  const { path: project } = useProject()
  const [{ status, delivery: chosen }, setAddress] = useAddress<'status' | 'delivery'>()
  const refresh = useRefresh()
  const again = useMutation({
    mutationFn: (deliveryId: string) => call(replayWebhookDelivery, { path: { ...project, deliveryId } }),
    onSuccess: async () => {
      done('It is sent again.')
      await refresh()
    },
    onError: failed,
  })
  const rows = (
    <List<WebhookDelivery>
      name="Deliveries"
      operation={operation}
      {...(path ? { path } : {})}
      query={{ status }}
      every={10_000}
      onOpen={(row) => setAddress({ delivery: row.id }, false)}
      columns={[
        {
          title: 'Event',
          show: (row) => (
            <>
              <RowButton onClick={() => setAddress({ delivery: row.id }, false)}>{row.event_name}</RowButton>
              {row.status !== 'delivered' && <span className="cell-sub">{reasonOf(row)}</span>}
            </>
          ),
        },
        {
          title: 'Status',
          show: (row) => (
            <Status
              value={words[row.status as keyof typeof words] ?? row.status}
              meaning={meanings[row.status as keyof typeof meanings] ?? 'none'}
            />
          ),
        },
        { title: 'Attempts', isNumber: true, show: (row) => count(row.attempt_count) },
        { title: 'When', show: (row) => <When at={row.created_at} /> },
        {
          title: 'Again',
          show: (row) =>
            row.status === 'delivered' ? (
              <Text size="xs" c="dimmed">
                done
              </Text>
            ) : (
              <Button
                size="compact-xs"
                variant="default"
                leftSection={<Send size={12} />}
                loading={again.isPending && again.variables === row.id}
                onClick={() => again.mutate(row.id)}
              >
                Send again
              </Button>
            ),
        },
      ]}
      empty={
        <Empty icon={<Send size={22} />} title={status ? 'None of these' : 'No deliveries yet'}>
          Each event that matches a webhook is delivered, and stands here with what became of it.
        </Empty>
      }
    />
  )
  return (
    <>
      <Group mb="sm">
        <SegmentedControl
          size="xs"
          aria-label="Status"
          value={status ?? ''}
          onChange={(next) => setAddress({ status: next || undefined })}
          data={[
            { value: '', label: 'All' },
            { value: 'failed', label: 'Failed' },
            { value: 'dlq', label: 'Given up' },
            { value: 'pending', label: 'On their way' },
            { value: 'delivered', label: 'Delivered' },
          ]}
        />
      </Group>
      {rows}
      <OneDelivery id={chosen} onClose={() => setAddress({ delivery: undefined })} />
    </>
  )
}

const OneDelivery = ({ id, onClose }: { id: string | undefined; onClose: () => void }) => {
  const { path } = useProject()
  const { data, error } = useQuery({
    queryKey: ['delivery', path.projectId, id],
    enabled: id !== undefined,
    queryFn: async () => (await call(getWebhookDelivery, { path: { ...path, deliveryId: id ?? '' } })).data,
  })
  return (
    <Drawer opened={id !== undefined} onClose={onClose} title="One delivery">
      {error && <Failure error={error} />}
      {data && <Attempts delivery={data} />}
    </Drawer>
  )
}
