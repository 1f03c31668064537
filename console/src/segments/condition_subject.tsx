import { Autocomplete, Select } from '@mantine/core'
import { ReferenceInput } from '../parts/form/reference_input.tsx'
import type { ConditionProps } from './condition_value.tsx'
import { useNumbers, useProperties } from './known.ts'
import { columns, fitting, isMeasured, keyOf, measures, sources } from './leaves.ts'

/** What exactly a condition asks about: the property, field, event or definition. */
export const Subject = ({ leaf, place, onChange }: ConditionProps) => {
  const properties = useProperties()
  const numbers = useNumbers(leaf['event_name'])
  const source = String(leaf['source'])
  const key = keyOf[source]
  if (source === 'property')
    return (
      <Autocomplete
        aria-label={`Property ${place}`}
        placeholder="Property, such as plan.tier"
        data={[...properties.keys()].sort()}
        value={String(leaf['column'] ?? '')}
        onChange={(column) => onChange({ ...leaf, column })}
      />
    )
  if (source === 'user')
    return (
      <Select
        aria-label={`Field ${place}`}
        data={Object.entries(columns).map(([value, [label]]) => ({ value, label }))}
        value={String(leaf['column'])}
        allowDeselect={false}
        onChange={(column) => onChange(fitting({ ...leaf, column }, leaf))}
      />
    )
  if (source === 'event')
    return (
      <>
        <ReferenceInput
          reference="event_name"
          aria-label={`Event ${place}`}
          placeholder="Event"
          value={String(leaf['event_name'] ?? '')}
          onChange={(event_name) => onChange({ ...leaf, event_name: event_name ?? '' })}
        />
        <Select
          aria-label={`Measure ${place}`}
          data={Object.entries(measures).map(([value, label]) => ({ value, label }))}
          value={String(leaf['measure'] ?? 'count')}
          allowDeselect={false}
          onChange={(measure) => {
            const { column: _, ...rest } = leaf
            onChange(fitting({ ...rest, measure, ...(isMeasured({ measure }) ? { column: '' } : {}) }, leaf))
          }}
        />
        {isMeasured(leaf) && (
          <Autocomplete
            aria-label={`Number ${place}`}
            placeholder="Of which property"
            data={numbers}
            value={String(leaf['column'] ?? '')}
            onChange={(column) => onChange({ ...leaf, column })}
          />
        )}
      </>
    )
  if (!key) return null
  return (
    <ReferenceInput
      reference={key[1]}
      aria-label={`${sources[source]} ${place}`}
      placeholder={`Which ${sources[source]?.toLowerCase()}`}
      value={leaf[key[0]] ? String(leaf[key[0]]) : undefined}
      clearable={false}
      onChange={(next) => onChange({ ...leaf, [key[0]]: next ?? '' })}
    />
  )
}
