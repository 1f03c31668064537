import { Group, SegmentedControl } from '@mantine/core'
import { Receipt } from 'lucide-react'
import type { Row } from '../api.ts'
import { List } from '../parts/list.tsx'
import { PageHead, useAddress } from '../parts/page.tsx'
import { RowActions } from '../parts/row_actions.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { UserFilter, UserName } from '../parts/users.tsx'

type Granted = { readonly key: string; readonly quantity: number }

const Actions = ({ row }: { row: Row }) => (
  <RowActions
    isQuiet
    row={row}
    path={{ purchaseId: String(row['id']) }}
    actions={[
      {
        title: 'Refund',
        operation: 'POST /v1/admin/projects/{projectId}/purchases/{purchaseId}/refund',
        verb: 'Refund it',
        said: 'It is refunded.',
        isOffered: ({ status }) => status === 'completed',
        words: {
          revoke_items: { title: 'Take the items', help: 'Off: the user keeps what was given' },
          force: { title: 'Also when something is missing', help: 'Takes what is there' },
          reason: { title: 'Reason', help: 'For the audit trail' },
        },
        preset: () => ({ revoke_items: true }),
      },
    ]}
  />
)

/** What users have bought, newest first. */
export const Page = () => {
  const [{ user, status }, setAddress] = useAddress<'user' | 'status'>()
  return (
    <>
      <PageHead title="Purchases" about="What users have bought in your stores" />
      <Group mb="sm" gap="xs">
        <UserFilter />
        <SegmentedControl
          size="xs"
          aria-label="Status"
          value={status ?? ''}
          onChange={(next) => setAddress({ status: next || undefined })}
          data={[
            { value: '', label: 'All' },
            { value: 'completed', label: 'Completed' },
            { value: 'refunded', label: 'Refunded' },
          ]}
        />
      </Group>
      <List<Row>
        name="Purchases"
        operation="GET /v1/admin/projects/{projectId}/purchases"
        query={{ user_id: user, status, include: 'user' }}
        columns={[
          {
            title: 'User',
            show: (row) => (
              <UserName id={row['app_user_id'] as string} user={row['user'] as { display_name: string } | null} />
            ),
          },
          {
            title: 'Got',
            show: (row) =>
              (row['granted'] as readonly Granted[])
                .map(({ key, quantity }) => `${count(quantity)} × ${key}`)
                .join(', '),
          },
          {
            title: 'Price',
            isNumber: true,
            show: (row) => `${count(row['total_price'] as number)} ${row['currency_code']}`,
          },
          { title: 'Status', show: (row) => <Status value={String(row['status'])} /> },
          { title: 'When', show: (row) => <When at={row['created_at'] as string} /> },
          { title: 'Actions', isNumber: true, show: (row) => <Actions row={row} /> },
        ]}
        empty={
          <Empty icon={<Receipt size={22} />} title={user || status ? 'Nothing matches' : 'Nothing is bought yet'}>
            Each purchase of an offer stands here, and can be refunded.
          </Empty>
        }
      />
    </>
  )
}
