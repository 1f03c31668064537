import { Bell } from 'lucide-react'
import type { Row } from '../api.ts'
import { wordsOf } from '../parts/form/schema.ts'
import { List } from '../parts/list.tsx'
import { PageHead } from '../parts/page.tsx'
import { Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { UserName } from '../parts/users.tsx'
import { NotConnected } from './connected.tsx'

/** Every push of the project, whatever it came from, with what became of it. */
export const Page = () => (
  <>
    <PageHead title="Deliveries" about="Every message with what became of it" />
    <NotConnected />
    <List<Row>
      name="Deliveries"
      operation="GET /v1/admin/projects/{projectId}/push/deliveries"
      every={10_000}
      columns={[
        { title: 'User', show: (row) => <UserName id={String(row['user_id'] ?? row['app_user_id'])} /> },
        { title: 'Status', show: (row) => <Status value={String(row['status'])} /> },
        {
          title: 'Why',
          show: (row) => wordsOf(String(row['skip_reason'] ?? row['reason'] ?? row['error'] ?? '')) || '—',
        },
        {
          title: 'When',
          show: (row) => <When at={(row['sent_at'] ?? row['due_at'] ?? row['created_at']) as string} />,
        },
      ]}
      empty={<Empty icon={<Bell size={22} />} title="Nothing was sent yet" />}
    />
  </>
)
