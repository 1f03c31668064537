import { Button, Group, Modal, Skeleton, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { callAny, type Row } from '../api.ts'
import { shownValue } from '../parts/facts.tsx'
import { wordsOf } from '../parts/form/schema.ts'
import { ShortTable } from '../parts/list.tsx'
import { Card, Facts, PageHead, useParam, useProject } from '../parts/page.tsx'
import { Compared } from '../parts/simulate.tsx'
import { done, Empty, Failure, useRefresh, When } from '../parts/states.tsx'
import { useAnswer } from '../parts/stats.tsx'
import { Status } from '../parts/status.tsx'
import { UserName } from '../parts/users.tsx'
import { meanings, statuses, storeWords } from './words.ts'

const base = '/v1/admin/projects/{projectId}/subscriptions/{subscriptionId}'
const outcomes: Readonly<Record<string, string>> = {
  applied: 'applied',
  older: 'older than what is known',
  waiting: 'waits for another',
  unknown_user: 'user not known',
  without_effect: 'without effect',
}

/** Computes the subscription again from the stored events of the provider: first shown, then done. */
const Replay = ({ id }: { id: string }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [isOpen, setOpen] = useState(false)
  const run = (dry_run: boolean) =>
    callAny(`POST ${base}/replay`, { path: { ...path, subscriptionId: id }, query: { dry_run }, body: {} })
  const preview = useMutation({
    mutationFn: async () => (await run(true)).data as { before: Row | null; after: Row | null; changed: boolean },
  })
  const work = useMutation({
    mutationFn: () => run(false),
    onSuccess: async () => {
      setOpen(false)
      done('The subscription is computed again.')
      await refresh()
    },
  })
  const { before, after, changed } = preview.data ?? {}
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])].filter(
    (name) => typeof (after ?? before)?.[name] !== 'object' && !/^(id|.*_id|updated_at)$/.test(name),
  )
  return (
    <>
      <Button
        variant="default"
        onClick={() => {
          setOpen(true)
          preview.mutate()
        }}
      >
        Replay events
      </Button>
      <Modal opened={isOpen} onClose={() => setOpen(false)} title="Replay the events of the provider" size="lg">
        {preview.isPending && <Skeleton h={120} />}
        {preview.error && <Failure error={preview.error} />}
        {preview.data && (
          <>
            <Text size="sm" mb="sm">
              {changed
                ? 'Computed again from the stored events, the subscription would be different:'
                : 'Computed again from the stored events, the subscription stays as it is.'}
            </Text>
            {changed && (
              <Compared
                heads={['Now', 'Then']}
                rows={names.map((name) => [
                  wordsOf(name),
                  shownValue(name, before?.[name]) ?? '—',
                  shownValue(name, after?.[name]) ?? '—',
                ])}
              />
            )}
          </>
        )}
        {work.error && <Failure error={work.error} />}
        <Group justify="flex-end" mt="md" gap="xs">
          <Button variant="default" onClick={() => setOpen(false)}>
            Close
          </Button>
          <Button loading={work.isPending} disabled={!changed} onClick={() => work.mutate()}>
            Replay
          </Button>
        </Group>
      </Modal>
    </>
  )
}

/** One subscription: its state, what it gives, and what the provider said. */
export const Page = () => {
  const id = useParam('id')
  const { data, error, refetch } = useAnswer(`GET ${base}`, { subscriptionId: id })
  const back = { title: 'Subscriptions', to: 'subscriptions' }
  if (error)
    return (
      <>
        <PageHead title="Subscription" back={back} />
        <Failure error={error} onRetry={refetch} />
      </>
    )
  if (!data)
    return (
      <>
        <PageHead title="Subscription" back={back} />
        <Skeleton h={320} />
      </>
    )
  const grants = data['grants'] as readonly Row[]
  const events = data['events'] as readonly Row[]
  const status = String(data['status'])
  return (
    <>
      <PageHead
        title={String(data['product_id'] ?? 'Subscription')}
        about={
          <span className="links">
            of <UserName id={data['app_user_id'] as string} />
          </span>
        }
        back={back}
        actions={<Replay id={id} />}
      />
      <div className="split">
        <div className="column">
          <Card title="What the provider said" flush>
            {events.length === 0 ? (
              <Empty title="No events yet" />
            ) : (
              <ShortTable
                name="What the provider said"
                rows={events}
                keyOf={(event) => String(event['id'])}
                columns={[
                  { title: 'Event', show: (event) => wordsOf(String(event['type']).toLowerCase()) },
                  { title: 'Outcome', show: (event) => outcomes[String(event['outcome'])] },
                  { title: 'Until', show: (event) => <When at={event['expiration_date'] as string | null} /> },
                  { title: 'At', show: (event) => <When at={event['event_at'] as string} /> },
                ]}
              />
            )}
          </Card>
          <Card title="What it gives" flush>
            {grants.length === 0 ? (
              <Empty title="No entitlements">The product gives none, or none is declared for it.</Empty>
            ) : (
              <ShortTable
                name="What it gives"
                rows={grants}
                keyOf={(grant) => String(grant['id'])}
                columns={[
                  { title: 'Entitlement', show: (grant) => String(grant['entitlement_id']) },
                  { title: 'Status', show: (grant) => <Status value={grant['is_active'] ? 'active' : 'ended'} /> },
                  {
                    title: 'Until',
                    show: (grant) => <When at={grant['expiration_date'] as string | null} none="for life" />,
                  },
                ]}
              />
            )}
          </Card>
        </div>
        <Card title="Facts">
          <Facts
            facts={[
              ['Status', <Status key="s" value={statuses[status] ?? status} meaning={meanings[status] ?? 'none'} />],
              ['Store', storeWords(data['store'])],
              ['Period', wordsOf(String(data['period_type']).toLowerCase())],
              ['Bought', <When key="b" at={data['purchase_date'] as string} />],
              ['Until', <When key="u" at={data['expiration_date'] as string | null} none="for life" />],
              ['Renews', data['auto_renew'] ? 'yes' : 'no'],
              ['Kind', data['environment'] === 'sandbox' ? 'test purchase' : 'real purchase'],
            ]}
          />
        </Card>
      </div>
    </>
  )
}
