import { Autocomplete, NumberInput, SegmentedControl, Select, Stack, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import {
  adminGrantInventory,
  createCurrencyTransaction,
  createRoleAssignment,
  deleteRoleAssignment,
  grantUserEntitlement,
  grantXp,
  listCatalogItemDefinitions,
  listCurrencyDefinitions,
  listRoles,
  reverseCurrencyTransaction,
  revokeInventory,
  revokeUserEntitlement,
} from '../../../sdk/src/generated/admin.ts'
import { call, callAny, type Row } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { ProjectLink, useProject } from '../parts/page.tsx'
import { count } from '../parts/states.tsx'
import { nameOf } from '../parts/users.tsx'
import type { DialogProps } from './one_user.ts'

const Amount = ({
  value,
  onChange,
  label = 'Amount',
  min,
}: {
  value: number
  onChange: (value: number) => void
  label?: string
  min?: number
}) => (
  <NumberInput
    label={label}
    value={value}
    onChange={(next) => onChange(Number(next) || 0)}
    allowDecimal={false}
    thousandSeparator=" "
    {...(min === undefined ? {} : { min })}
    data-autofocus
  />
)

const None = ({ what, to }: { what: string; to: string }) => (
  <>
    This project has no {what} yet. <ProjectLink to={to}>Make one</ProjectLink> first.
  </>
)

/** Gives an amount of a currency, or takes it. The first one that does not refill by itself is offered. */
export const GiveCurrency = ({
  user,
  balances,
  isOpen,
  onClose,
}: DialogProps & { balances: Readonly<Record<string, number>> | undefined }) => {
  const { path } = useProject()
  const [chosen, setChosen] = useState<string>()
  const [amount, setAmount] = useState(100)
  const [reason, setReason] = useState('support')
  const { data } = useQuery({
    queryKey: ['currencies', path.projectId],
    queryFn: () => call(listCurrencyDefinitions, { path, query: { limit: 100 } }),
  })
  const all = [...(data?.data ?? [])].reverse().filter((one) => one.is_active)
  const code = chosen ?? (all.find((one) => !one.regen) ?? all[0])?.code
  const now = code ? (balances?.[code] ?? 0) : 0
  const choices = all.map((one) => ({ value: one.code, label: one.name }))
  return (
    <Confirm
      title={`Give currency to ${nameOf(user)}`}
      verb={amount < 0 ? 'Take' : 'Give'}
      isDangerous={amount < 0}
      isDisabled={!code || amount === 0 || reason.trim() === ''}
      said={`${amount > 0 ? '+' : ''}${count(amount)} ${code ?? ''} for ${nameOf(user)}.`}
      isOpen={isOpen}
      onClose={onClose}
      run={() =>
        call(createCurrencyTransaction, {
          path,
          body: { app_user_id: user.id, adjustments: [{ currency_code: code ?? '', amount }], reason },
        })
      }
      undo={({ data: { transactions } }) =>
        Promise.all(
          transactions.map(({ id }) => call(reverseCurrencyTransaction, { path: { ...path, transactionId: id } })),
        )
      }
    >
      {data && all.length === 0 ? (
        <None what="currencies" to="currencies" />
      ) : (
        <Stack gap="sm">
          {choices.length > 4 ? (
            <Select
              label="Currency"
              data={choices}
              value={code ?? null}
              onChange={(next) => setChosen(next ?? undefined)}
            />
          ) : (
            choices.length > 1 && (
              <SegmentedControl aria-label="Currency" data={choices} value={code ?? ''} onChange={setChosen} />
            )
          )}
          <Amount value={amount} onChange={setAmount} />
          <TextInput
            label="Reason"
            description="Stands in the ledger and in the audit trail"
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
          />
          <Text size="sm" c="dimmed">
            {count(now)} now, <b>{count(now + amount)}</b> after. A negative amount takes.
          </Text>
        </Stack>
      )}
    </Confirm>
  )
}

export const GiveXp = ({ user, isOpen, onClose }: DialogProps) => {
  const { path } = useProject()
  const [amount, setAmount] = useState(100)
  const [reason, setReason] = useState('')
  const grant = (by: number) =>
    call(grantXp, { path, body: { app_user_id: user.id, amount: by, ...(reason ? { reason } : {}) } })
  return (
    <Confirm
      title={`Give XP to ${nameOf(user)}`}
      verb={amount < 0 ? 'Take' : 'Give'}
      isDangerous={false}
      isDisabled={amount === 0}
      said={({ data }) =>
        `${data.amount > 0 ? '+' : ''}${count(data.amount)} XP for ${nameOf(user)}, now ${count(data.total_after)}.`
      }
      isOpen={isOpen}
      onClose={onClose}
      run={() => grant(amount)}
      undo={({ data }) => grant(-data.amount)}
    >
      <Stack gap="sm">
        <Amount value={amount} onChange={setAmount} label="XP" />
        <TextInput label="Reason" value={reason} onChange={(event) => setReason(event.currentTarget.value)} />
      </Stack>
    </Confirm>
  )
}

const lengths = [
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
  { value: '365', label: 'A year' },
  { value: '', label: 'For life' },
]

export const GiveEntitlement = ({ user, isOpen, onClose }: DialogProps) => {
  const { path } = useProject()
  const [key, setKey] = useState('')
  const [days, setDays] = useState('30')
  const held = user.entitlements as readonly Row[]
  const { data } = useQuery({
    queryKey: ['entitlements', path.projectId],
    queryFn: async () => {
      const answer = await callAny('GET /v1/admin/projects/{projectId}/monetization/definitions', { path })
      const { monetization } = answer.data as { monetization: { entitlements: readonly Row[] } }
      return monetization.entitlements.map((one) => String(one['key']))
    },
  })
  const known = [...new Set([...(data ?? []), ...held.map((one) => String(one['entitlement_id']))])]
  const hadIt = held.some((one) => one['entitlement_id'] === key)
  const userPath = { ...path, userId: user.id }
  return (
    <Confirm
      title={`Give an entitlement to ${nameOf(user)}`}
      verb="Give"
      isDangerous={false}
      isDisabled={key.trim() === ''}
      said={`${nameOf(user)} has ${key}.`}
      isOpen={isOpen}
      onClose={onClose}
      run={() =>
        call(grantUserEntitlement, {
          path: userPath,
          body: { entitlement_id: key.trim(), ...(days ? { duration_days: Number(days) } : {}), reason: 'support' },
        })
      }
      // taking it back would take an earlier gift too
      {...(hadIt
        ? {}
        : { undo: () => call(revokeUserEntitlement, { path: { ...userPath, entitlementId: key.trim() } }) })}
    >
      <Stack gap="sm">
        <Autocomplete
          label="Entitlement"
          description="Such as premium or no_ads"
          data={known}
          value={key}
          onChange={setKey}
          data-autofocus
        />
        <SegmentedControl aria-label="For how long" data={lengths} value={days} onChange={setDays} />
        <Text size="sm" c="dimmed">
          {hadIt ? 'A gift that is there is made longer, never shorter.' : 'It works at once, beside what was bought.'}
        </Text>
      </Stack>
    </Confirm>
  )
}

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
  return (
    <Confirm
      title={`Give an item to ${nameOf(user)}`}
      verb="Give"
      isDangerous={false}
      isDisabled={!item || quantity < 1}
      said={`${quantity} × ${item?.name ?? ''} for ${nameOf(user)}.`}
      isOpen={isOpen}
      onClose={onClose}
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

export const GiveRole = ({ user, isOpen, onClose }: DialogProps) => {
  const { path } = useProject()
  const [key, setKey] = useState<string | null>(null)
  const { data } = useQuery({
    queryKey: ['roles', path.projectId],
    queryFn: () => call(listRoles, { path, query: { limit: 100 } }),
  })
  const roles = (data?.data ?? []).filter((role) => !role.is_default)
  const role = roles.find((one) => one.key === key) ?? roles[0]
  const at = { ...path, idOrKey: role?.key ?? '' }
  return (
    <Confirm
      title={`Give a role to ${nameOf(user)}`}
      verb="Give"
      isDangerous={false}
      isDisabled={!role}
      said={`${nameOf(user)} is ${role?.name ?? ''} now.`}
      isOpen={isOpen}
      onClose={onClose}
      run={() => call(createRoleAssignment, { path: at, body: { app_user_id: user.id } })}
      undo={() => call(deleteRoleAssignment, { path: { ...at, userId: user.id } })}
    >
      {data && roles.length === 0 ? (
        <None what="roles" to="roles" />
      ) : (
        <Select
          label="Role"
          description={role?.permissions.join(', ')}
          data={roles.map((one) => ({ value: one.key, label: one.name }))}
          value={role?.key ?? null}
          onChange={setKey}
          allowDeselect={false}
        />
      )}
    </Confirm>
  )
}
