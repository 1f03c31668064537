import { Button } from '@mantine/core'
import { Package } from 'lucide-react'
import { adminGrantInventory, revokeInventory } from '../../../sdk/src/generated/admin.ts'
import { call, type Row } from '../api.ts'
import { useChosen } from '../parts/chosen.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { ListCard } from '../parts/list_card.tsx'
import { ProjectLink } from '../parts/page.tsx'
import { count, Empty, When } from '../parts/states.tsx'
import { useUser } from './one_user.ts'

type Stack = {
  readonly id: string
  readonly catalog_item_id: string
  readonly item: Row
  readonly quantity: number
  readonly expires_at: string | null
  readonly created_at: string
}
type Movement = {
  readonly id: string
  readonly catalog_item_key: string
  readonly change: number
  readonly quantity_after: number
  readonly kind: string
  readonly reason: string
  readonly created_at: string
}
const nameOfItem = (stack: Stack | undefined) => String(stack?.item['name'] ?? stack?.item['key'] ?? 'the item')

/** The items that a user has, and each movement of them. */
export const Inventory = () => {
  const { path } = useUser()
  const { one: stack, isOpen, choose, close } = useChosen<Stack>()
  const body = {
    app_user_id: path.userId,
    catalog_item_key: String(stack?.item['key'] ?? ''),
    quantity: stack?.quantity ?? 1,
    reason: 'support',
  }
  return (
    <div className="column">
      <ListCard<Stack>
        title="Items"
        operation="GET /v1/admin/projects/{projectId}/inventory"
        query={{ user_id: path.userId }}
        columns={[
          {
            title: 'Item',
            show: (one) => <ProjectLink to={`catalog/${one.catalog_item_id}`}>{nameOfItem(one)}</ProjectLink>,
          },
          { title: 'Quantity', isNumber: true, show: (one) => count(one.quantity) },
          { title: 'Since', show: (one) => <When at={one.created_at} /> },
          { title: 'Ends', show: (one) => <When at={one.expires_at} none="never" /> },
          {
            title: 'Take',
            show: (one) =>
              one.quantity > 0 ? (
                <Button size="compact-xs" variant="default" onClick={() => choose(one)}>
                  Take
                </Button>
              ) : (
                'used up'
              ),
          },
        ]}
        empty={
          <Empty icon={<Package size={22} />} title="No items">
            Purchases, rewards and gifts put them here. To give one: More actions, Item.
          </Empty>
        }
      />
      <ListCard<Movement>
        title="Movements"
        operation="GET /v1/admin/projects/{projectId}/inventory/ledger"
        query={{ user_id: path.userId }}
        limit={20}
        columns={[
          {
            title: 'Change',
            show: (one) => (
              <>
                <b>
                  {one.change > 0 ? '+' : ''}
                  {count(one.change)}
                </b>{' '}
                <span className="mono">{one.catalog_item_key}</span>
              </>
            ),
          },
          { title: 'After', isNumber: true, show: (one) => count(one.quantity_after) },
          { title: 'What', show: (one) => one.kind },
          { title: 'Reason', show: (one) => one.reason },
          { title: 'When', show: (one) => <When at={one.created_at} /> },
        ]}
        empty={<Empty title="No movements yet" />}
      />
      <Confirm
        title={`Take ${nameOfItem(stack)}?`}
        verb="Take"
        said={`${nameOfItem(stack)} is taken.`}
        isOpen={isOpen}
        onClose={close}
        run={() => call(revokeInventory, { path: { projectId: path.projectId }, body })}
        undo={() => call(adminGrantInventory, { path: { projectId: path.projectId }, body })}
      >
        All {count(stack?.quantity ?? 0)} of it go out of the inventory.
      </Confirm>
    </div>
  )
}
