import { Button, Group, Slider, Text } from '@mantine/core'
import { useEffect, useState } from 'react'

const steps = [0, 1, 5, 10, 25, 50, 100]

/** A share of users: by sliding, or one of the usual steps by one click. It is told when the hand lets go. */
export const Percentage = ({
  value,
  onCommit,
  label = 'Share of users',
  isDisabled = false,
}: {
  value: number
  onCommit: (value: number) => void
  label?: string
  isDisabled?: boolean
}) => {
  const [draft, setDraft] = useState(value)
  useEffect(() => setDraft(value), [value])
  const commit = (next: number) => {
    setDraft(next)
    if (next !== value) onCommit(next)
  }
  return (
    <div>
      <Group gap="md" wrap="nowrap" mb={10}>
        <Slider
          flex={1}
          thumbLabel={label}
          value={draft}
          onChange={setDraft}
          onChangeEnd={commit}
          min={0}
          max={100}
          step={1}
          label={(share) => `${share} %`}
          disabled={isDisabled}
        />
        <Text component="strong" fw={700} miw={54} ta="right" fz={17}>
          {draft} %
        </Text>
      </Group>
      <fieldset className="steps" aria-label={label}>
        {steps.map((step) => (
          <Button
            key={step}
            size="compact-xs"
            variant={step === draft ? 'filled' : 'default'}
            aria-pressed={step === draft}
            disabled={isDisabled}
            onClick={() => commit(step)}
          >
            {step} %
          </Button>
        ))}
      </fieldset>
    </div>
  )
}
