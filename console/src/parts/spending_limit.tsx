import { NumberInput, Stack, Switch } from '@mantine/core'
import { useState } from 'react'
import { setSpendCeiling } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Confirm } from './dialogs.tsx'

/** Sets the most that calls of a project may cost in a month, or takes that limit away. */
export const SpendingLimit = ({
  projectId,
  name,
  limit,
  isOpen,
  onClose,
}: {
  projectId: string
  /** Of the project, where others stand beside it. */
  name?: string
  limit: number | null
  isOpen: boolean
  onClose: () => void
}) => {
  const [isOff, setOff] = useState(false)
  const [typed, setTyped] = useState<number | ''>()
  const amount = typed ?? limit ?? ''
  const next = isOff || amount === '' ? null : amount
  const put = (amount_usd: number | null) => call(setSpendCeiling, { path: { projectId }, body: { amount_usd } })
  return (
    <Confirm
      title={name ? `Spending limit of ${name}` : 'Spending limit'}
      verb="Save"
      isOpen={isOpen}
      isDangerous={false}
      isDisabled={!isOff && amount === ''}
      values={[isOff, typed ?? null]}
      said={`${name ?? 'The project'} ${next === null ? 'has no spending limit.' : `may spend $${next} a month.`}`}
      onClose={() => {
        setOff(false)
        setTyped(undefined)
        onClose()
      }}
      run={() => put(next)}
      undo={() => put(limit)}
    >
      <Stack gap="sm">
        <Switch
          label="Limit what it may spend"
          checked={!isOff}
          onChange={(event) => setOff(!event.currentTarget.checked)}
        />
        {!isOff && (
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
            onChange={(value) => setTyped(value === '' ? '' : Number(value))}
            data-autofocus
          />
        )}
      </Stack>
    </Confirm>
  )
}
