import { useQuery } from '@tanstack/react-query'
import { Zap } from 'lucide-react'
import { callAny, type Row } from '../api.ts'
import { activeColumn } from '../parts/definitions/columns.tsx'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { Card, ProjectLink, useProject } from '../parts/page.tsx'
import { count, When } from '../parts/states.tsx'
import { Funnel } from './campaigns.tsx'
import { automationFacts } from './facts.tsx'

const one = '/v1/admin/projects/{projectId}/push/automations/{automationId}'

const triggerOf = (row: Row): string => {
  const trigger = row['trigger'] as Row
  return trigger['event_name'] ? `after ${trigger['event_name']}` : `when a segment is ${trigger['on']}`
}

/** What became of the messages of an automation. */
const Detail = ({ row }: { row: Row }) => {
  const { path } = useProject()
  const automationId = String(row['id'])
  const { data } = useQuery({
    queryKey: ['automation', path.projectId, automationId],
    queryFn: () => callAny(`GET ${one}/stats`, { path: { ...path, automationId } }),
  })
  return <Card title="What became of it">{data && <Funnel stats={data.data as Row} />}</Card>
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
  facts: automationFacts,
  Detail,
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
