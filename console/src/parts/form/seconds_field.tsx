import { Group, NumberInput, Select } from '@mantine/core'
import { useState } from 'react'
import type { Control } from './field.ts'
import { Help } from './labelled.tsx'

const units = { 1: 'seconds', 60: 'minutes', 3600: 'hours', 86400: 'days' } as const
const sizes = Object.keys(units).map(Number).reverse()

/** The largest unit of which a number of seconds has whole ones. */
export const unitOf = (seconds: number): number =>
  seconds === 0 ? 1 : (sizes.find((size) => seconds % size === 0) ?? 1)

/** A span that the API counts in seconds, in the unit in which people say it. */
export const SecondsField = ({ schema, value, set, common, frame }: Control) => {
  const seconds = value as number | undefined
  const [unit, setUnit] = useState(seconds === undefined ? 1 : unitOf(seconds))
  const { minimum, maximum } = schema
  const help = frame.help?.replace(/^Seconds\b/, 'How long').replace(/^How long, a/, 'A')
  return (
    <Group gap="xs" align="flex-end" wrap="nowrap">
      <NumberInput
        {...common}
        description={help && <Help text={help} />}
        flex={1}
        value={seconds === undefined ? '' : seconds / unit}
        onChange={(next) => set(next === '' ? undefined : Math.round(Number(next) * unit))}
        thousandSeparator=","
        {...(minimum === undefined ? {} : { min: minimum / unit })}
        {...(maximum === undefined ? {} : { max: maximum / unit })}
      />
      <Select
        aria-label={`Unit of ${frame.label}`}
        w={120}
        allowDeselect={false}
        data={Object.entries(units).map(([size, label]) => ({ value: size, label }))}
        value={String(unit)}
        onChange={(next) => {
          const size = Number(next ?? 1)
          setUnit(size)
          // the number stays as it was typed: "2 minutes" become "2 hours"
          if (seconds !== undefined) set(Math.round((seconds / unit) * size))
        }}
      />
    </Group>
  )
}
