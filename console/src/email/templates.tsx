import { Text } from '@mantine/core'
import { LayoutTemplate } from 'lucide-react'
import type { Row } from '../api.ts'
import type { Kind } from '../parts/definitions/kind.ts'
import { pagesOf } from '../parts/definitions/pages.tsx'
import { Card, ProjectLink } from '../parts/page.tsx'
import { When } from '../parts/states.tsx'

/** The text of a template. Its HTML is not shown as a page: it is somebody's, and the policy of this page forbids it. */
const Shown = ({ row }: { row: Row }) => (
  <Card title={String(row['subject'] ?? row['key'])}>
    <Text size="sm" className="written">
      {String(row['text'] ?? 'It has no plain text.')}
    </Text>
  </Card>
)

const kind: Kind = {
  path: 'email/templates',
  id: 'key',
  at: 'email/templates',
  noun: 'template',
  plural: 'templates',
  icon: LayoutTemplate,
  about: 'Subject and text of mail, in every language, used by its key',
  empty: 'Receipts, invitations and what users sign in with are written here once.',
  keyOf: (row) => String(row['key']),
  columns: [
    {
      title: 'Template',
      show: (row) => (
        <>
          <ProjectLink to={`email/templates/${encodeURIComponent(String(row['key']))}`}>
            {String(row['name'] ?? row['key'])}
          </ProjectLink>
          <span className="cell-sub mono">{String(row['key'])}</span>
        </>
      ),
    },
    { title: 'Subject', show: (row) => String(row['subject'] ?? '—') },
    {
      title: 'Changed',
      show: (row) => <When at={(row['updated_at'] ?? row['created_at']) as string} none="built in" />,
    },
  ],
  facts: (row) => [
    ['Key', String(row['key'])],
    ['Category', row['category'] as string],
    ['Languages', ['as written', ...Object.keys((row['locales'] as object | null) ?? {})].join(', ')],
    ['Changed', <When key="at" at={(row['updated_at'] ?? row['created_at']) as string} none="built in" />],
  ],
  Detail: Shown,
}
export const { List, New, One } = pagesOf(kind)
