import { Autocomplete, NumberInput, Select, TagsInput, Text } from '@mantine/core'
import { useState } from 'react'
import { isObject } from '../parts/form/schema.ts'
import { asPlain, type Plain, plainOf, TypedValue, TypeSelect } from '../parts/form/typed_value.tsx'
import { useProperties } from './known.ts'
import { shapeOf, takesList, takesNone } from './leaves.ts'
import type { Leaf } from './rules.ts'

export type ConditionProps = { readonly leaf: Leaf; readonly place: string; readonly onChange: (next: Leaf) => void }

/** The control for what a condition compares with: its kind follows from what it asks about and from the comparison. */
export const Value = ({ leaf, place, onChange }: ConditionProps) => {
  const properties = useProperties()
  const shape = shapeOf(leaf)
  const value = leaf['value']
  const set = (next: unknown) => {
    const { value: _, ...rest } = leaf
    onChange(next === undefined ? rest : { ...rest, value: next })
  }
  const known = leaf['source'] === 'property' ? [...(properties.get(String(leaf['column'])) ?? [])] : []
  const first = Array.isArray(value) ? value[0] : value
  const [chosen, setChosen] = useState<Plain>()
  const type = chosen ?? (first !== undefined && first !== '' ? plainOf(first) : plainOf(known[0]))
  if (takesNone(leaf['op']) || shape === 'state') return null
  if (shape === 'time') {
    const days = isObject(value) ? Number(value['days_ago']) : undefined
    if (days === undefined && value !== undefined)
      return (
        <Text size="sm" c="dimmed" mt={8}>
          {new Date(String(value)).toLocaleDateString('en')}, kept as it is
        </Text>
      )
    return (
      <NumberInput
        aria-label={`Days ${place}`}
        value={days ?? ''}
        min={0}
        suffix=" days"
        hideControls
        onChange={(next) => set(next === '' ? undefined : { days_ago: Number(next) })}
      />
    )
  }
  if (shape === 'yes') return <TypedValue label={`Value ${place}`} type="boolean" value={value} onChange={set} />
  if (shape === 'challenge')
    return (
      <Select
        aria-label={`State ${place}`}
        data={['none', 'in_progress', 'completed', 'expired', 'left'].map((one) => ({
          value: one,
          label: one === 'none' ? 'not joined' : one.replace('_', ' '),
        }))}
        value={String(value)}
        allowDeselect={false}
        onChange={set}
      />
    )
  if (shape === 'number')
    return <TypedValue label={`Value ${place}`} type="number" value={value} placeholder="Number" onChange={set} />
  if (takesList(leaf['op']))
    return (
      <TagsInput
        aria-label={`Values ${place}`}
        placeholder="Type one, press Enter"
        data={known.filter((one) => typeof one === 'string') as string[]}
        value={[value ?? []].flat().map(String)}
        onChange={(next) => set(next.map((text) => asPlain(text, type)))}
      />
    )
  const samples = known.filter((one) => typeof one === 'string') as string[]
  return (
    <>
      {type === 'text' && samples.length > 0 ? (
        <Autocomplete
          aria-label={`Value ${place}`}
          placeholder={`such as ${samples[0]}`}
          data={samples.slice(0, 30)}
          value={value === undefined ? '' : String(value)}
          onChange={set}
        />
      ) : (
        <TypedValue label={`Value ${place}`} type={type} value={value} onChange={set} />
      )}
      {leaf['source'] === 'property' && leaf['column'] !== '' && known.length === 0 && (
        <div className="condition-type">
          <Text size="xs" c="dimmed">
            The value is a
          </Text>
          <TypeSelect
            label={`Type ${place}`}
            value={type}
            onChange={(next) => {
              setChosen(next)
              if (value !== undefined) set(asPlain(String(value), next))
            }}
          />
        </div>
      )}
    </>
  )
}
