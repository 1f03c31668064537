import { SegmentedControl, Select, Stack, Text, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import {
  createCurrencyTransaction,
  grantXp,
  listCurrencyDefinitions,
  reverseCurrencyTransaction,
} from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { useProject } from '../parts/page.tsx'
import { count } from '../parts/states.tsx'
import { nameOf } from '../parts/users.tsx'
import { Amount, None } from './give_parts.tsx'
import type { DialogProps } from './one_user.ts'

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
  // what was typed and left is not there the next time
  const close = () => {
    setChosen(undefined)
    setAmount(100)
    setReason('support')
    onClose()
  }
  return (
    <Confirm
      title={`Give currency to ${nameOf(user)}`}
      verb={amount < 0 ? 'Take' : 'Give'}
      isDangerous={amount < 0}
      isDisabled={!code || amount === 0 || reason.trim() === ''}
      said={`${amount > 0 ? '+' : ''}${count(amount)} ${code ?? ''} for ${nameOf(user)}.`}
      values={[chosen, amount, reason]}
      isOpen={isOpen}
      onClose={close}
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

/** Gives XP, or takes it. */
export const GiveXp = ({ user, isOpen, onClose }: DialogProps) => {
  const { path } = useProject()
  const [amount, setAmount] = useState(100)
  const [reason, setReason] = useState('')
  const grant = (by: number) =>
    call(grantXp, { path, body: { app_user_id: user.id, amount: by, ...(reason ? { reason } : {}) } })
  const close = () => {
    setAmount(100)
    setReason('')
    onClose()
  }
  return (
    <Confirm
      title={`Give XP to ${nameOf(user)}`}
      verb={amount < 0 ? 'Take' : 'Give'}
      isDangerous={false}
      isDisabled={amount === 0}
      values={[amount, reason]}
      said={({ data }) =>
        `${data.amount > 0 ? '+' : ''}${count(data.amount)} XP for ${nameOf(user)}, now ${count(data.total_after)}.`
      }
      isOpen={isOpen}
      onClose={close}
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
