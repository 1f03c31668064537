import { Button } from '@mantine/core'
import { Gift, Undo2 } from 'lucide-react'
import { Drawer } from '../parts/drawer.tsx'
import { OperationForm } from '../parts/form/form.tsx'
import { useAddress } from '../parts/page.tsx'
import { done } from '../parts/states.tsx'

/** Gives items to a user, or takes some away. The open drawer stands in the address as `do`. */
export const MoveItems = ({ kind, item }: { kind: 'grant' | 'revoke'; item?: string }) => {
  const [{ do: open, user }, setAddress] = useAddress<'do' | 'user'>()
  const isGrant = kind === 'grant'
  const close = () => setAddress({ do: undefined })
  return (
    <>
      <Button
        variant={isGrant && !item ? 'filled' : 'default'}
        leftSection={isGrant ? <Gift size={16} /> : <Undo2 size={16} />}
        onClick={() => setAddress({ do: kind }, false)}
      >
        {isGrant ? 'Grant' : 'Revoke'}
      </Button>
      <Drawer opened={open === kind} onClose={close} title={isGrant ? 'Grant an item' : 'Revoke an item'}>
        <OperationForm
          operation={`POST /v1/admin/projects/{projectId}/inventory/${kind}`}
          preset={{
            reason: 'support',
            quantity: 1,
            ...(item ? { catalog_item_key: item } : {}),
            ...(user ? { app_user_id: user } : {}),
          }}
          words={{
            app_user_id: { title: 'User' },
            catalog_item_key: { title: 'Item' },
            quantity: { title: 'How many' },
            reason: { title: 'Reason', help: 'For the ledger' },
            expires_at: { title: 'Until', help: 'For ever if empty' },
          }}
          verb={isGrant ? 'Grant the item' : 'Revoke the item'}
          onCancel={close}
          onDone={() => {
            void close()
            done(isGrant ? 'The item is granted.' : 'The item is revoked.')
          }}
        />
      </Drawer>
    </>
  )
}
