import { ActionIcon, Autocomplete, Button, Group as Line, Select, Stack, TagsInput, Text } from '@mantine/core'
import { FolderPlus, Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useEventNames } from '../event_names.ts'
import type { Editor } from './field.ts'
import {
  type Condition,
  filterOf,
  type Group,
  groupOf,
  isGroup,
  type Join,
  type Node,
  operators,
  takesList,
  takesNone,
} from './filter.ts'
import { Labelled } from './labelled.tsx'
import { asPlain, type Plain, plainOf, TypedValue, TypeSelect } from './typed_value.tsx'

type Property = { readonly path: string; readonly types: readonly string[]; readonly sample?: unknown }

/** The properties that events of a name had, or of all names. */
const useProperties = (event: string | undefined): readonly Property[] => {
  const { data } = useEventNames()
  const events = data?.filter(({ event_name }) => !event || event_name === event) ?? []
  const all = events.flatMap(({ properties }) => properties as readonly Property[])
  return [...new Map(all.map((property) => [property.path, property])).values()]
}

const isPlain = (value: unknown) => value === undefined || value === null || typeof value !== 'object'
const knownType = (property: Property | undefined): Plain | undefined => {
  const [only, second] = property?.types ?? []
  if (second !== undefined) return undefined
  return only === 'number' ? 'number' : only === 'boolean' ? 'boolean' : only === 'string' ? 'text' : undefined
}

const ConditionRow = ({
  condition,
  place,
  properties,
  onChange,
  onRemove,
}: {
  condition: Condition
  place: string
  properties: readonly Property[]
  onChange: (next: Condition) => void
  onRemove: () => void
}) => {
  const { column, op, value } = condition
  const known = properties.find(({ path }) => path === column)
  const first = Array.isArray(value) ? value[0] : value
  const [chosen, setChosen] = useState<Plain>()
  const type = first === undefined || first === '' ? (chosen ?? knownType(known) ?? 'text') : (chosen ?? plainOf(first))
  const withOp = (next: string): Condition => {
    if (takesNone(next)) return { column, op: next }
    if (takesList(next) === takesList(op) && !takesNone(op)) return { ...condition, op: next }
    const values = takesList(next) ? [value].flat().filter((one) => one !== undefined) : first
    return { column, op: next, ...(values === undefined ? {} : { value: values }) }
  }
  const retyped = (next: Plain) => {
    setChosen(next)
    if (value === undefined) return
    const again = (one: unknown) => asPlain(String(one), next)
    onChange({ ...condition, value: Array.isArray(value) ? value.map(again) : again(value) })
  }
  return (
    <fieldset className="condition" aria-label={`Condition ${place}`}>
      <Autocomplete
        aria-label={`Property ${place}`}
        placeholder="Property"
        data={properties.map(({ path }) => path)}
        value={column}
        onChange={(next) => {
          const wanted = knownType(properties.find(({ path }) => path === next))
          const kept = wanted && !Array.isArray(value) && value !== undefined ? asPlain(String(value), wanted) : value
          if (wanted) setChosen(undefined)
          onChange({ ...condition, column: next, ...(kept === undefined ? {} : { value: kept }) })
        }}
      />
      <Select
        aria-label={`Comparison ${place}`}
        data={operators}
        value={op}
        allowDeselect={false}
        onChange={(next) => onChange(withOp(next ?? 'eq'))}
        comboboxProps={{ width: 'max-content', position: 'bottom-start' }}
      />
      {takesNone(op) ? (
        <span />
      ) : !isPlain(first) ? (
        <Text size="sm" c="dimmed" mt={8}>
          an object, kept as it is
        </Text>
      ) : takesList(op) ? (
        <TagsInput
          aria-label={`Values ${place}`}
          placeholder="Type one, press Enter"
          value={[value ?? []].flat().map(String)}
          onChange={(next) => onChange({ ...condition, value: next.map((text) => asPlain(text, type)) })}
        />
      ) : (
        <TypedValue
          label={`Value ${place}`}
          type={type}
          value={value}
          placeholder={known?.sample === undefined ? 'Value' : `such as ${String(known.sample)}`}
          onChange={(next) => onChange({ ...condition, value: next })}
        />
      )}
      <ActionIcon variant="subtle" color="gray" size={36} aria-label={`Remove condition ${place}`} onClick={onRemove}>
        <Trash2 size={15} />
      </ActionIcon>
      {column !== '' && !knownType(known) && !takesNone(op) && isPlain(first) && (
        <div className="condition-type">
          <Text size="xs" c="dimmed" className="nowrap">
            The value is a
          </Text>
          <TypeSelect label={`Type ${place}`} value={type} onChange={retyped} />
        </div>
      )}
    </fieldset>
  )
}

const joins = [
  { value: 'and', label: 'All of these hold' },
  { value: 'or', label: 'One of these holds' },
  { value: 'none', label: 'None of these holds' },
]

const GroupRows = ({
  group,
  place,
  depth,
  properties,
  onChange,
}: {
  group: Group
  place: string
  depth: number
  properties: readonly Property[]
  onChange: (next: Group) => void
}) => {
  const { join, items } = group
  const set = (next: readonly Node[]) => onChange({ ...group, items: next })
  const replaced = (at: number, next: Node) => set(items.map((item, n) => (n === at ? next : item)))
  const without = (at: number) => set(items.filter((_, n) => n !== at))
  return (
    <Stack gap={8}>
      {(items.length > 1 || join !== 'and' || depth > 0) && (
        <Select
          aria-label={place ? `Conditions of group ${place}` : 'Conditions'}
          data={joins}
          value={join}
          allowDeselect={false}
          onChange={(next) => onChange({ ...group, join: (next ?? 'and') as Join })}
          w={220}
          maw="100%"
        />
      )}
      {items.map((item, at) => {
        const here = place ? `${place}.${at + 1}` : String(at + 1)
        return isGroup(item) ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: conditions have no identifier
          <div className="condition-group" key={at}>
            <GroupRows
              group={item}
              place={here}
              depth={depth + 1}
              properties={properties}
              onChange={(next) => (next.items.length === 0 ? without(at) : replaced(at, next))}
            />
          </div>
        ) : (
          <ConditionRow
            // biome-ignore lint/suspicious/noArrayIndexKey: conditions have no identifier
            key={at}
            condition={item}
            place={here}
            properties={properties}
            onChange={(next) => replaced(at, next)}
            onRemove={() => without(at)}
          />
        )
      })}
      <Line gap={6}>
        <Button
          variant="default"
          size="xs"
          leftSection={<Plus size={14} />}
          onClick={() => set([...items, { column: '', op: 'eq' }])}
        >
          Add condition
        </Button>
        {items.length > 0 && depth < 6 && (
          <Button
            variant="subtle"
            color="gray"
            size="xs"
            leftSection={<FolderPlus size={14} />}
            onClick={() => set([...items, { join: 'or', items: [{ column: '', op: 'eq' }] }])}
          >
            Add group
          </Button>
        )}
      </Line>
    </Stack>
  )
}

/** A filter as rows of property, comparison and value. */
export const FilterEditor: Editor = ({ label, help, value, onChange, error, beside }) => {
  const event = beside['event_name'] ?? beside['qualifying_event']
  const properties = useProperties(typeof event === 'string' ? event : undefined)
  const [group, setGroup] = useState(() => groupOf(value))
  return (
    <Labelled id={`filter-${label}`} label={label} help={help} error={error}>
      <fieldset className="rows" aria-label={label}>
        <GroupRows
          group={group}
          place=""
          depth={0}
          properties={properties}
          onChange={(next) => {
            setGroup(next)
            onChange(filterOf(next))
          }}
        />
      </fieldset>
    </Labelled>
  )
}
