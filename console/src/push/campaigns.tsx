import { useQuery } from '@tanstack/react-query'
import { Bell } from 'lucide-react'
import { callAny, type Row } from '../api.ts'
import { Days } from '../parts/days.tsx'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { wordsOf } from '../parts/form/schema.ts'
import { List as Deliveries } from '../parts/list.tsx'
import { Card, ProjectLink, useProject } from '../parts/page.tsx'
import type { RowAction } from '../parts/row_actions.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { UserName } from '../parts/users.tsx'
import { NotConnected } from './connected.tsx'
import { campaignFacts } from './facts.tsx'

const steps = [
  ['planned', 'Planned'],
  ['sent', 'Sent'],
  ['opened', 'Opened'],
  ['converted', 'Converted'],
] as const

/** From those who were planned to those who did what the campaign was for, each as a bar. */
export const Funnel = ({ stats }: { stats: Row }) => {
  const totals = (stats['totals'] ?? stats) as Row
  const shown = steps.filter(([name]) => typeof totals[name] === 'number')
  const most = Math.max(1, ...shown.map(([name]) => Number(totals[name])))
  return (
    <dl className="funnel">
      {shown.map(([name, title]) => (
        <div key={name}>
          <dt>{title}</dt>
          <dd>
            <span className="funnel-bar" style={{ width: `${(Number(totals[name]) / most) * 100}%` }} />
            {count(Number(totals[name]))}
          </dd>
        </div>
      ))}
    </dl>
  )
}

/** What became of a campaign: its funnel and each delivery with its reason. */
export const campaignDetail = (channel: 'push' | 'email') => {
  const Detail = ({ row }: { row: Row }) => {
    const { path } = useProject()
    const one = `/v1/admin/projects/{projectId}/${channel}/campaigns/{campaignId}`
    const campaignId = String(row['id'])
    const stats = useQuery({
      queryKey: ['campaign', path.projectId, campaignId],
      refetchInterval: 10_000,
      queryFn: async () => (await callAny(`GET ${one}/stats`, { path: { ...path, campaignId } })).data as Row,
    })
    return (
      <>
        <Card title="What became of it">{stats.data && <Funnel stats={stats.data} />}</Card>
        {row['started_at'] !== null && (
          <Days
            operation={`GET ${one}/daily`}
            path={{ campaignId }}
            charts={[
              ['sent', 'Sent each day'],
              ['opened', 'Opened each day'],
            ]}
          />
        )}
        <Card title="Deliveries" flush>
          <Deliveries<Row>
            name="Deliveries"
            isInside
            operation={`GET ${one}/deliveries`}
            path={{ campaignId }}
            query={{ include: 'user' }}
            columns={[
              {
                title: 'User',
                show: (delivery) => (
                  <UserName
                    id={delivery['app_user_id'] as string}
                    user={delivery['user'] as { display_name: string } | null}
                  />
                ),
              },
              { title: 'Status', show: (delivery) => <Status value={String(delivery['status'])} /> },
              {
                title: 'Why',
                show: (delivery) =>
                  wordsOf(
                    String(
                      delivery['skip_reason'] ??
                        delivery['reason'] ??
                        delivery['error'] ??
                        delivery['last_error'] ??
                        '',
                    ),
                  ) || '—',
              },
              {
                title: 'When',
                show: (delivery) => (
                  <When at={(delivery['sent_at'] ?? delivery['due_at'] ?? delivery['created_at']) as string} />
                ),
              },
            ]}
            empty={<Empty icon={<Bell size={22} />} title="Nothing was sent yet" />}
          />
        </Card>
      </>
    )
  }
  return Detail
}

const isIn =
  (...states: string[]) =>
  (row: Row) =>
    states.includes(String(row['status']))

/** What can be done with a campaign of a channel, by its state. */
export const campaignActions = (channel: 'push' | 'email'): readonly RowAction[] => {
  const one = `POST /v1/admin/projects/{projectId}/${channel}/campaigns/{campaignId}`
  return [
    {
      title: 'Send a test',
      operation: `${one}/test`,
      verb: 'Send',
      said: 'A test is on its way.',
      words: { user_ids: { title: 'Users' } },
    },
    {
      title: 'Schedule',
      operation: `${one}/schedule`,
      verb: 'Schedule',
      said: 'The campaign is scheduled.',
      isOffered: isIn('draft'),
    },
    {
      title: 'Pause',
      operation: `${one}/pause`,
      verb: 'Pause',
      said: 'The campaign pauses.',
      isOffered: isIn('sending', 'scheduled'),
      asks: () => 'Nothing more goes out until you resume it.',
    },
    {
      title: 'Resume',
      operation: `${one}/resume`,
      verb: 'Resume',
      said: 'The campaign goes on.',
      isOffered: isIn('paused'),
      asks: () => 'What has not been sent goes out.',
    },
    {
      title: 'Cancel',
      operation: `${one}/cancel`,
      verb: 'Cancel the campaign',
      said: 'The campaign is cancelled.',
      isOffered: isIn('scheduled', 'sending', 'paused'),
      asks: () => 'What has not been sent is never sent.',
    },
    {
      title: 'Copy',
      operation: `${one}/duplicate`,
      verb: 'Copy',
      said: 'There is a copy, as a draft.',
      asks: () => 'The copy is a draft with the same content.',
    },
  ]
}

/** Columns of campaigns of any channel. */
export const campaignColumns = (at: string): Kind['columns'] => [
  { title: 'Campaign', show: (row) => <ProjectLink to={`${at}/${row['id']}`}>{String(row['name'])}</ProjectLink> },
  { title: 'Status', show: (row) => <Status value={String(row['status'])} /> },
  {
    title: 'Sends',
    show: (row) => (
      <When
        at={((row['schedule'] as Row | null)?.['send_at'] ?? row['send_at']) as string | null}
        none="not scheduled"
      />
    ),
  },
  { title: 'Changed', show: (row) => <When at={(row['updated_at'] ?? row['created_at']) as string} /> },
]

const kind: Kind = {
  path: 'push/campaigns',
  id: 'campaignId',
  at: 'push',
  noun: 'campaign',
  plural: 'campaigns',
  icon: Bell,
  about: 'Messages to many users at once, on their phones and in their inboxes',
  empty: 'A campaign reaches all users or a segment, now or at the hour that suits each of them.',
  columns: campaignColumns('push'),
  actions: campaignActions('push'),
  Detail: campaignDetail('push'),
  facts: campaignFacts,
}
const pages = pagesOf(kind)
export const One = pages.One
export const List = () => (
  <>
    <NotConnected />
    <pages.List />
  </>
)
