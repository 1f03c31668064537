import { NumberInput, Stack, Switch } from '@mantine/core'
import { useState } from 'react'
import { setSpendCeiling } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'

type Limited = { readonly id: string; readonly name: string; readonly ceiling: number | null }

/** Sets the most that calls of a project may cost in a month, or takes that limit away. */
export const Spending = ({ project, onClose }: { project: Limited; onClose: () => void }) => {
  const [isLimited, setLimited] = useState(true)
  const [amount, setAmount] = useState<number | ''>(project.ceiling ?? '')
  const put = (amount_usd: number | null) =>
    call(setSpendCeiling, { path: { projectId: project.id }, body: { amount_usd } })
  const next = isLimited && amount !== '' ? amount : null
  return (
    <Confirm
      title={`Spending limit of ${project.name}`}
      verb="Save"
      isOpen
      isDangerous={false}
      isDisabled={isLimited && amount === ''}
      values={[isLimited, amount]}
      said={next === null ? `${project.name} has no spending limit.` : `${project.name} may spend $${next} a month.`}
      onClose={onClose}
      run={() => put(next)}
      undo={() => put(project.ceiling)}
    >
      <Stack gap="sm">
        <Switch
          label="Limit what it may spend"
          checked={isLimited}
          onChange={(event) => setLimited(event.currentTarget.checked)}
        />
        {isLimited && (
          <NumberInput
            label="US dollars a month"
            description="When it is reached, AI and mail that you send are refused until the month ends; 0 stops them at once. Mail of sign-in goes on"
            min={0}
            max={1_000_000_000}
            allowNegative={false}
            decimalScale={2}
            thousandSeparator=","
            prefix="$"
            value={amount}
            onChange={(value) => setAmount(value === '' ? '' : Number(value))}
            data-autofocus
          />
        )}
      </Stack>
    </Confirm>
  )
}
