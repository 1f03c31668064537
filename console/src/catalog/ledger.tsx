import { Group } from '@mantine/core'
import { ScrollText } from 'lucide-react'
import type { Row } from '../api.ts'
import { wordsOf } from '../parts/form/schema.ts'
import { List } from '../parts/list.tsx'
import { PageHead, ProjectLink, useAddress } from '../parts/page.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { UserFilter, UserName } from '../parts/users.tsx'

const kinds: Readonly<Record<string, 'good' | 'bad' | 'none'>> = { granted: 'good', revoked: 'bad' }

/** Every movement of items. */
export const Page = () => {
  const [{ user }] = useAddress<'user'>()
  return (
    <>
      <PageHead title="Inventory ledger" about="Every movement of an item, and why" />
      <Group mb="sm">
        <UserFilter />
      </Group>
      <List<Row>
        name="Inventory ledger"
        operation="GET /v1/admin/projects/{projectId}/inventory/ledger"
        query={{ user_id: user, include: 'user' }}
        columns={[
          {
            title: 'User',
            show: (row) => (
              <UserName id={row['app_user_id'] as string} user={row['user'] as { display_name: string } | null} />
            ),
          },
          {
            title: 'Item',
            show: (row) => (
              <ProjectLink to={`catalog/${row['catalog_item_key']}`}>{String(row['catalog_item_key'])}</ProjectLink>
            ),
          },
          {
            title: 'What',
            show: (row) => <Status value={String(row['kind'])} meaning={kinds[String(row['kind'])] ?? 'none'} />,
          },
          {
            title: 'Change',
            isNumber: true,
            show: (row) => `${Number(row['change']) > 0 ? '+' : ''}${count(row['change'] as number)}`,
          },
          { title: 'Left', isNumber: true, show: (row) => count(row['quantity_after'] as number) },
          { title: 'Reason', show: (row) => wordsOf(String(row['reason'])) },
          { title: 'When', show: (row) => <When at={row['created_at'] as string} /> },
        ]}
        empty={
          <Empty icon={<ScrollText size={22} />} title="No movements yet">
            Each item that a user gets or loses stands here.
          </Empty>
        }
      />
    </>
  )
}
