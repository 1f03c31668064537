import { ActionIcon, Button, NumberInput, Select, Text } from '@mantine/core'
import { Trash2 } from 'lucide-react'
import { useState } from 'react'
import { FilterEditor } from '../parts/form/filter_editor.tsx'
import { Subject } from './condition_subject.tsx'
import { type ConditionProps, Value } from './condition_value.tsx'
import { fitting, newLeaf, operatorsOf, sources, takesList } from './leaves.ts'

/** A condition as a line: what it asks about, how it compares, and with what. */
export const Condition = ({
  leaf,
  place,
  error,
  onChange,
  onRemove,
}: ConditionProps & { readonly error: string | undefined; readonly onRemove: () => void }) => (
  <fieldset className="condition condition-line" aria-label={`Condition ${place}`}>
    <div className="condition">
      <Select
        aria-label={`Asks about ${place}`}
        data={Object.entries(sources).map(([value, label]) => ({ value, label }))}
        value={String(leaf['source'])}
        allowDeselect={false}
        onChange={(source) => onChange(newLeaf(source ?? 'property'))}
        comboboxProps={{ width: 'max-content', position: 'bottom-start' }}
      />
      <Subject leaf={leaf} place={place} onChange={onChange} />
      <Select
        aria-label={`Comparison ${place}`}
        data={[...operatorsOf(leaf)]}
        value={String(leaf['op'])}
        allowDeselect={false}
        onChange={(op) => {
          const value = leaf['value']
          const list = takesList(op)
          const next =
            list === takesList(leaf['op']) ? value : list ? (value === undefined ? [] : [value]) : [value].flat()[0]
          const { value: _, ...rest } = leaf
          onChange(fitting({ ...rest, op, ...(next === undefined ? {} : { value: next }) }, leaf))
        }}
        comboboxProps={{ width: 'max-content', position: 'bottom-start' }}
      />
      <Value key={`${leaf['source']} ${leaf['column']}`} leaf={leaf} place={place} onChange={onChange} />
      {leaf['source'] === 'event' && !leaf['since'] && !leaf['until'] && (
        <NumberInput
          className="condition-short"
          aria-label={`Within days ${place}`}
          placeholder="of all time"
          prefix="within "
          suffix=" days"
          min={1}
          hideControls
          value={(leaf['within_days'] as number | undefined) ?? ''}
          onChange={(next) => {
            const { within_days: _, ...rest } = leaf
            onChange(next === '' ? rest : { ...rest, within_days: Number(next) })
          }}
        />
      )}
      {leaf['source'] === 'event' && leaf['event_name'] !== '' && (
        <Where leaf={leaf} place={place} onChange={onChange} />
      )}
      {error && (
        <Text size="xs" c="var(--bad)" role="alert" className="condition-wide">
          {error}
        </Text>
      )}
    </div>
    <ActionIcon variant="subtle" color="gray" size={36} aria-label={`Remove condition ${place}`} onClick={onRemove}>
      <Trash2 size={15} />
    </ActionIcon>
  </fieldset>
)

/** Which of the events count, where not all of them do. */
const Where = ({ leaf, place, onChange }: ConditionProps) => {
  const [isOpen, setOpen] = useState(leaf['where'] !== undefined)
  const set = (where: unknown) => {
    const { where: _, ...rest } = leaf
    onChange(where === undefined ? rest : { ...rest, where })
  }
  return (
    <div className="condition-wide">
      {isOpen ? (
        <FilterEditor
          label={`Only events of which, ${place}`}
          help={undefined}
          error={undefined}
          value={leaf['where']}
          onChange={set}
          beside={{ event_name: leaf['event_name'] }}
        />
      ) : (
        <Button size="compact-xs" variant="subtle" color="gray" onClick={() => setOpen(true)}>
          Only some of these events
        </Button>
      )}
    </div>
  )
}
