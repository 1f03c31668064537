import { Group } from '@mantine/core'
import { Backpack } from 'lucide-react'
import type { Row } from '../api.ts'
import { ReferenceInput } from '../parts/form/reference_input.tsx'
import { List } from '../parts/list.tsx'
import { PageHead, ProjectLink, useAddress } from '../parts/page.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { UserFilter, UserName } from '../parts/users.tsx'
import { MoveItems } from './move.tsx'

/** What users own. */
export const Page = () => {
  const [{ user, item }, setAddress] = useAddress<'user' | 'item'>()
  return (
    <>
      <PageHead
        title="Inventory"
        about="What users own"
        actions={
          <>
            <MoveItems kind="revoke" />
            <MoveItems kind="grant" />
          </>
        }
      />
      <Group mb="sm" gap="xs">
        <UserFilter />
        <ReferenceInput
          reference="item_key"
          aria-label="Only one item"
          placeholder="All items"
          value={item}
          onChange={(next) => setAddress({ item: next })}
        />
      </Group>
      <List<Row>
        name="Inventory"
        operation="GET /v1/admin/projects/{projectId}/inventory"
        query={{ user_id: user, item_key: item, include: 'user' }}
        columns={[
          {
            title: 'User',
            show: (row) => (
              <UserName id={row['app_user_id'] as string} user={row['user'] as { display_name: string } | null} />
            ),
          },
          {
            title: 'Item',
            show: (row) => {
              const of = row['item'] as { key: string; name: string }
              return <ProjectLink to={`catalog/${of.key}`}>{of.name}</ProjectLink>
            },
          },
          { title: 'How many', isNumber: true, show: (row) => count(row['quantity'] as number) },
          { title: 'Since', show: (row) => <When at={row['created_at'] as string} /> },
          { title: 'Until', show: (row) => <When at={row['expires_at'] as string | null} none="for ever" /> },
        ]}
        empty={
          <Empty icon={<Backpack size={22} />} title={user || item ? 'Nothing matches' : 'Nobody owns anything yet'}>
            Users own what they buy, win, or get from you.
          </Empty>
        }
      />
    </>
  )
}
