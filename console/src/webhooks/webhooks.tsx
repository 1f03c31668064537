import { Webhook } from 'lucide-react'
import type { Row } from '../api.ts'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { ProjectLink } from '../parts/page.tsx'
import { When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { DeliveryList } from './delivery_list.tsx'

const meanings = { active: 'good', degraded: 'warn', disabled: 'bad' } as const
const statusOf = (row: Row) => (
  <Status
    value={row['status'] === 'degraded' ? 'failing' : String(row['status'])}
    meaning={meanings[row['status'] as keyof typeof meanings] ?? 'none'}
  />
)

const kind: Kind = {
  path: 'webhooks',
  id: 'webhookId',
  at: 'webhooks',
  noun: 'webhook',
  plural: 'webhooks',
  icon: Webhook,
  about: 'Calls of your server when something happens, signed and tried again until they arrive',
  empty: 'Your server hears of a purchase, a new user or a broken streak as it happens.',
  titleOf: (row) => `${row['event_name']} to ${new URL(String(row['target_url'])).host}`,
  columns: [
    {
      title: 'Event',
      show: (row) => (
        <>
          <ProjectLink to={`webhooks/${row['id']}`}>{String(row['event_name'])}</ProjectLink>
          <span className="cell-sub">{String(row['description'] ?? row['target_url'])}</span>
        </>
      ),
    },
    { title: 'Receiver', show: (row) => new URL(String(row['target_url'])).host },
    { title: 'Status', show: statusOf },
    { title: 'Changed', show: (row) => <When at={row['updated_at'] as string} /> },
  ],
  facts: (row) => [
    ['Event', String(row['event_name'])],
    ['Address', String(row['target_url'])],
    ['Status', statusOf(row)],
    ['Sends the user along', row['include_user'] ? 'yes' : 'no'],
    ['Only events that match', row['filter'] ? 'a filter' : 'all of them'],
    ['Made', <When key="made" at={row['created_at'] as string} />],
  ],
  actions: [
    {
      title: 'Send a test',
      operation: 'POST /v1/admin/projects/{projectId}/webhooks/{webhookId}/test',
      verb: 'Send a test',
      said: 'A test is on its way: see its delivery.',
      asks: (row) => `A made-up “${row['event_name']}” is sent to ${row['target_url']}.`,
    },
    {
      title: 'Send failed ones again',
      operation: 'POST /v1/admin/projects/{projectId}/webhooks/{webhookId}/replay',
      verb: 'Send again',
      said: 'They are sent again.',
    },
    {
      title: 'New signing secret',
      operation: 'POST /v1/admin/projects/{projectId}/webhooks/{webhookId}/rotate-secret',
      verb: 'Make a new secret',
      said: 'There is a new secret.',
    },
  ],
  Detail: ({ row }) => (
    <DeliveryList
      operation="GET /v1/admin/projects/{projectId}/webhooks/{webhookId}/deliveries"
      path={{ webhookId: String(row['id']) }}
    />
  ),
}
export const { List, New, One } = pagesOf(kind)
