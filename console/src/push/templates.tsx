import { LayoutTemplate } from 'lucide-react'
import type { Row } from '../api.ts'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { ProjectLink, useProject } from '../parts/page.tsx'
import { When } from '../parts/states.tsx'
import { useProjects } from '../shell/shell.tsx'
import { Phone } from './phone.tsx'

const messageOf = (row: Row) => row['message'] as { title?: string; body?: string }

const Shown = ({ row }: { row: Row }) => {
  const { projectId } = useProject()
  const app = useProjects().data?.data.find(({ id }) => id === projectId)?.name ?? ''
  return <Phone title={messageOf(row).title ?? ''} body={messageOf(row).body ?? ''} app={app} />
}

const kind: Kind = {
  path: 'push/templates',
  id: 'key',
  at: 'push/templates',
  noun: 'template',
  plural: 'templates',
  icon: LayoutTemplate,
  about: 'Messages that automations use by their key',
  empty: 'A template is written once, in every language, and used by several automations.',
  keyOf: (row) => String(row['key']),
  columns: [
    {
      title: 'Template',
      show: (row) => (
        <>
          <ProjectLink to={`push/templates/${encodeURIComponent(String(row['key']))}`}>
            {String(row['name'] ?? row['key'])}
          </ProjectLink>
          <span className="cell-sub">{messageOf(row).title}</span>
        </>
      ),
    },
    { title: 'Text', show: (row) => <span className="cell-sub">{messageOf(row).body}</span> },
    { title: 'Changed', show: (row) => <When at={row['updated_at'] as string} /> },
  ],
  facts: (row) => [
    ['Key', String(row['key'])],
    ['Changed', <When key="at" at={row['updated_at'] as string} />],
  ],
  Detail: Shown,
}
export const { List, New, One } = pagesOf(kind)
