import { Button, Group, Slider, Text } from '@mantine/core'
import { useEffect, useRef, useState } from 'react'

/** Whoever holds an arrow key down or presses it ten times means the share at the end. */
const keysRestMs = 600
const steps = [0, 1, 5, 10, 25, 50, 100]

/** A share of users: by sliding, or one of the usual steps by one click. It is told when the hand lets go, or the keys rest. */
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
  const isByKey = useRef(false)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const waiting = useRef<() => void>(undefined)
  useEffect(() => {
    if (!waiting.current) setDraft(value)
  }, [value])
  const commit = (next: number) => {
    clearTimeout(timer.current)
    waiting.current = undefined
    setDraft(next)
    if (next !== value) onCommit(next)
  }
  const flush = () => waiting.current?.()
  const settle = (next: number) => {
    if (!isByKey.current) return commit(next)
    clearTimeout(timer.current)
    waiting.current = () => commit(next)
    timer.current = setTimeout(flush, keysRestMs)
  }
  useEffect(() => flush, [])
  return (
    <div>
      <Group
        gap="md"
        wrap="nowrap"
        mb={10}
        onKeyDownCapture={() => {
          isByKey.current = true
        }}
        onPointerDownCapture={() => {
          isByKey.current = false
        }}
        onBlur={flush}
      >
        <Slider
          flex={1}
          thumbLabel={label}
          value={draft}
          onChange={setDraft}
          onChangeEnd={settle}
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
