import { ActionIcon, Button, NumberInput, Select, Stack } from '@mantine/core'
import { Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import type { Editor } from './field.ts'
import { Labelled } from './labelled.tsx'
import { ReferenceInput } from './reference_input.tsx'
import { type Gift, giftsOf, kinds, rewardOf } from './reward.ts'

const GiftRow = ({
  gift,
  place,
  onChange,
  onRemove,
}: {
  gift: Gift
  place: number
  onChange: (next: Gift) => void
  onRemove: () => void
}) => {
  const kind = kinds.find((one) => one.kind === gift.kind)
  return (
    <fieldset className="condition" aria-label={`Reward ${place}`}>
      <Select
        aria-label={`What is given ${place}`}
        data={kinds.map(({ kind: value, title }) => ({ value, label: title }))}
        value={gift.kind}
        allowDeselect={false}
        onChange={(next) => {
          const chosen = kinds.find((one) => one.kind === next)
          onChange({ kind: next ?? 'xp', amount: chosen?.usual })
        }}
      />
      {kind?.what ? (
        <ReferenceInput
          reference={kind.what}
          aria-label={`${kind.title} ${place}`}
          placeholder={kind.title}
          clearable={false}
          value={gift.what}
          onChange={(what) => onChange({ ...gift, what })}
        />
      ) : null}
      {kind?.amount ? (
        <NumberInput
          aria-label={`${kind.amountTitle} ${place}`}
          placeholder={kind.kind === 'entitlements' ? 'Days; for life if empty' : (kind.amountTitle ?? '')}
          suffix={` ${kind.kind === 'entitlements' ? 'days' : kind.kind === 'xp' ? 'XP' : ''}`.trimEnd()}
          min={1}
          allowDecimal={false}
          thousandSeparator=","
          value={gift.amount ?? ''}
          onChange={(next) => onChange({ ...gift, amount: next === '' ? undefined : Number(next) })}
        />
      ) : null}
      <ActionIcon variant="subtle" color="gray" size={36} aria-label={`Remove reward ${place}`} onClick={onRemove}>
        <Trash2 size={15} />
      </ActionIcon>
    </fieldset>
  )
}

/** What users are given, as rows of kind, thing and amount. */
export const RewardEditor: Editor = ({ label, help, value, onChange, error }) => {
  const [{ gifts, rest }, setState] = useState(() => giftsOf(value))
  const set = (next: readonly Gift[]) => {
    setState({ gifts: next, rest })
    onChange(rewardOf(next, rest))
  }
  return (
    <Labelled id={`reward-${label}`} label={label} help={help} error={error}>
      <Stack gap={8} className="rows" role="group" aria-label={label}>
        {gifts.map((gift, at) => (
          <GiftRow
            // biome-ignore lint/suspicious/noArrayIndexKey: rows have no identifier
            key={at}
            gift={gift}
            place={at + 1}
            onChange={(next) => set(gifts.map((before, n) => (n === at ? next : before)))}
            onRemove={() => set(gifts.filter((_, n) => n !== at))}
          />
        ))}
        <div>
          <Button
            variant="default"
            size="xs"
            leftSection={<Plus size={14} />}
            onClick={() => set([...gifts, { kind: 'xp', amount: 10 }])}
          >
            Add reward
          </Button>
        </div>
      </Stack>
    </Labelled>
  )
}
