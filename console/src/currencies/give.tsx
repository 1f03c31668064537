import { Button, Group, NumberInput, Stack, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { HandCoins } from 'lucide-react'
import { useState } from 'react'
import { callAny, type Row } from '../api.ts'
import { Drawer } from '../parts/drawer.tsx'
import { ReferenceInput } from '../parts/form/reference_input.tsx'
import { FormFoot } from '../parts/form_foot.tsx'
import { useAddress, useProject } from '../parts/page.tsx'
import { count, done, useRefresh } from '../parts/states.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { UserPicker } from '../parts/users.tsx'

const operation = '/v1/admin/projects/{projectId}/currencies/transactions'

const Form = ({ code, user, onClose }: { code: string | undefined; user: string | undefined; onClose: () => void }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const [to, setTo] = useState(user)
  const [currency, setCurrency] = useState(code)
  const [amount, setAmount] = useState<number>()
  const [reason, setReason] = useState('support')
  const work = useMutation({
    mutationFn: async () => {
      const body = { app_user_id: to, adjustments: [{ currency_code: currency, amount }], reason }
      return (await callAny(`POST ${operation}`, { path, body })).data as
        | { transactions?: readonly Row[] }
        | readonly Row[]
    },
    onSuccess: async (data) => {
      const [first] = (Array.isArray(data) ? data : (data as { transactions?: readonly Row[] }).transactions) ?? []
      onClose()
      done(
        `${count(amount)} ${currency} ${Number(amount) > 0 ? 'given' : 'taken'}.`,
        first?.['id'] === undefined
          ? undefined
          : () =>
              callAny(`POST ${operation}/{transactionId}/reverse`, {
                path: { ...path, transactionId: first['id'] },
                body: {},
              }).then(refresh),
      )
      await refresh()
    },
  })
  useUnsaved([to, currency, amount, reason], work)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        work.mutate()
      }}
    >
      <Stack gap="sm">
        <UserPicker value={to} onChange={setTo} />
        <Group grow align="flex-start">
          <ReferenceInput
            reference="currency_code"
            label="Currency"
            required
            clearable={false}
            value={currency}
            onChange={setCurrency}
          />
          <NumberInput
            label="Amount"
            description="Negative takes away"
            required
            allowDecimal={false}
            thousandSeparator=","
            value={amount ?? ''}
            onChange={(next) => setAmount(next === '' ? undefined : Number(next))}
            inputWrapperOrder={['label', 'input', 'description', 'error']}
          />
        </Group>
        <TextInput
          label="Reason"
          required
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
          autoComplete="off"
        />
        <FormFoot
          verb={Number(amount) < 0 ? 'Take it' : 'Give it'}
          work={work}
          onCancel={onClose}
          isDisabled={!to || !currency || !amount || !reason}
        />
      </Stack>
    </form>
  )
}

/** Changes the balance of a user by hand; it can be undone. The open drawer stands in the address as `give`. */
export const GiveCurrency = ({ code }: { code?: string }) => {
  const [{ give, user }, setAddress] = useAddress<'give' | 'user'>()
  const close = () => setAddress({ give: undefined })
  return (
    <>
      <Button
        variant={code ? 'default' : 'filled'}
        leftSection={<HandCoins size={16} />}
        onClick={() => setAddress({ give: 'yes' }, false)}
      >
        Give
      </Button>
      <Drawer opened={give === 'yes'} onClose={close} title="Give a currency">
        {give === 'yes' && <Form code={code} user={user} onClose={close} />}
      </Drawer>
    </>
  )
}
