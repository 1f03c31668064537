import { Zap } from 'lucide-react'
import type { Row } from '../api.ts'
import { activeColumn, type Kind, pagesOf } from '../parts/definitions.tsx'
import { ProjectLink } from '../parts/page.tsx'
import { count, When } from '../parts/states.tsx'

const triggerOf = (row: Row): string => {
  const trigger = row['trigger'] as Row
  return trigger['event_name'] ? `after ${trigger['event_name']}` : `when a segment is ${trigger['on']}`
}

const kind: Kind = {
  path: 'push/automations',
  id: 'automationId',
  at: 'push/automations',
  noun: 'automation',
  plural: 'automations',
  icon: Zap,
  about: 'Messages that go out by themselves after an event, or when a user enters a segment',
  empty: 'Such as a reminder a day after the last lesson, unless there was one since.',
  titleOf: (row) => String(row['key']),
  columns: [
    {
      title: 'Automation',
      show: (row) => (
        <>
          <ProjectLink to={`push/automations/${row['id']}`}>{String(row['key'])}</ProjectLink>
          <span className="cell-sub">{triggerOf(row)}</span>
        </>
      ),
    },
    { title: 'Waits', show: (row) => `${count(Math.round(Number(row['delay_seconds']) / 60))} min` },
    activeColumn,
    { title: 'Changed', show: (row) => <When at={row['updated_at'] as string} /> },
  ],
}
export const { List, New, One } = pagesOf(kind)
