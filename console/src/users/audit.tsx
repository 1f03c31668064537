import { ScrollText } from 'lucide-react'
import type { Row } from '../api.ts'
import { List } from '../parts/list.tsx'
import { Empty, When } from '../parts/states.tsx'
import { useUser } from './one_user.ts'

const actors: Readonly<Record<string, string>> = {
  developer: 'your team',
  pat: 'a personal token',
  service_account: 'a service account',
  operator_token: 'an operator token',
  server_key: 'your server',
  system: 'Trellis',
}

/** `currencies.adjust` as `Currencies: adjust`. */
export const actionInWords = (action: string): string => {
  const [area = '', verb = ''] = action.split('.')
  const words = area === 'xp' ? 'XP' : area.replace(/_/g, ' ')
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}: ${verb.replace(/_/g, ' ')}`
}

const isTime = (value: unknown): value is string => typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value)
const isId = (value: unknown) => typeof value === 'string' && /^[0-9a-f]{8}-[0-9a-f]{4}-/.test(value)

const inWords = (value: unknown): string => {
  if (value === null || value === undefined) return 'none'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (isTime(value)) return new Date(value).toLocaleString('en', { dateStyle: 'medium', timeStyle: 'short' })
  if (Array.isArray(value)) return value.map(inWords).join(', ')
  if (typeof value === 'object') return Object.values(value).map(inWords).join(' ')
  return String(value)
}

/** What was changed, as `quantity 1, reason support`, with the old value where there was one. Values that the trail does not keep are named alone. */
export const changesInWords = (changes: Row): string =>
  Object.entries(changes)
    .flatMap(([name, change]) => {
      const field = name.replace(/_/g, ' ')
      const [before, after] = Array.isArray(change) && change.length === 2 ? change : [null, change]
      if (isId(after) || (before === null && after === null)) return []
      if (after === '[redacted]') return [field]
      return [before === null ? `${field} ${inWords(after)}` : `${field} ${inWords(before)} → ${inWords(after)}`]
    })
    .join(', ')

/** All fields of something new changed: that says nothing. */
const isMade = (one: Row) => /\.create$/.test(String(one['action']))

/** What the team and servers did about a user. */
export const Audit = () => {
  const { path } = useUser()
  return (
    <List<Row>
      name="Audit"
      operation="GET /v1/admin/projects/{projectId}/audit-events"
      query={{ target_id: path.userId }}
      columns={[
        { title: 'What', show: (one) => <b>{actionInWords(String(one['action']))}</b> },
        {
          title: 'Changes',
          show: (one) => (isMade(one) ? '—' : changesInWords(one['changes'] as Row) || '—'),
        },
        {
          title: 'Who',
          show: (one) => {
            const actor = one['actor'] as Row
            return (
              <span className="nowrap">{String(actor['label'] ?? actors[String(actor['type'])] ?? actor['type'])}</span>
            )
          },
        },
        { title: 'From', show: (one) => <span className="mono">{String(one['ip'] ?? '—')}</span> },
        { title: 'When', show: (one) => <When at={one['occurred_at'] as string} /> },
      ]}
      empty={
        <Empty icon={<ScrollText size={22} />} title="Nobody changed anything">
          What your team does about this user is noted here.
        </Empty>
      }
    />
  )
}
