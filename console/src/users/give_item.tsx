import { Select, Stack } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { adminGrantInventory, listCatalogItemDefinitions, revokeInventory } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { useProject } from '../parts/page.tsx'
import { nameOf } from '../parts/users.tsx'
import { Amount, None } from './give_parts.tsx'
import type { DialogProps } from './one_user.ts'

/** Gives an item of the catalog. */
export const GiveItem = ({ user, isOpen, onClose }: DialogProps) => {
  const { path } = useProject()
  const [key, setKey] = useState<string | null>(null)
  const [quantity, setQuantity] = useState(1)
  const { data } = useQuery({
    queryKey: ['items', path.projectId],
    queryFn: () => call(listCatalogItemDefinitions, { path, query: { limit: 100 } }),
  })
  const items = data?.data ?? []
  const item = items.find((one) => one.key === key) ?? items[0]
  const body = { app_user_id: user.id, catalog_item_key: item?.key ?? '', quantity, reason: 'support' }
  const close = () => {
    setKey(null)
    setQuantity(1)
    onClose()
  }
  return (
    <Confirm
      title={`Give an item to ${nameOf(user)}`}
      verb="Give"
      isDangerous={false}
      isDisabled={!item || quantity < 1}
      values={[key, quantity]}
      said={`${quantity} × ${item?.name ?? ''} for ${nameOf(user)}.`}
      isOpen={isOpen}
      onClose={close}
      run={() => call(adminGrantInventory, { path, body })}
      // a bundle is unpacked: its parts are taken one by one, in the inventory
      {...(item && item.item_type !== 'bundle' && item.item_type !== 'currency_pack'
        ? { undo: () => call(revokeInventory, { path, body }) }
        : {})}
    >
      {data && items.length === 0 ? (
        <None what="items" to="catalog" />
      ) : (
        <Stack gap="sm">
          <Select
            label="Item"
            searchable
            data={items.map((one) => ({ value: one.key, label: one.name }))}
            value={item?.key ?? null}
            onChange={setKey}
            allowDeselect={false}
          />
          <Amount value={quantity} onChange={setQuantity} label="How many" min={1} />
        </Stack>
      )}
    </Confirm>
  )
}
