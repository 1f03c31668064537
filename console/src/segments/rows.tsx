import {
  ActionIcon,
  Autocomplete,
  Button,
  Group as Line,
  NumberInput,
  SegmentedControl,
  Select,
  Stack,
  TagsInput,
  Text,
} from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { FolderPlus, Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { listEventNames, listUsers } from '../../../sdk/src/generated/admin.ts'
import { call, type Row } from '../api.ts'
import { FilterEditor } from '../parts/form/filter_editor.tsx'
import { ReferenceInput } from '../parts/form/reference_input.tsx'
import { isObject } from '../parts/form/schema.ts'
import { asPlain, type Plain, plainOf, TypedValue, TypeSelect } from '../parts/form/typed_value.tsx'
import { useProject } from '../parts/page.tsx'
import {
  columns,
  fitting,
  type Group,
  isGroup,
  isMeasured,
  type Join,
  keyOf,
  type Leaf,
  measures,
  type Node,
  newLeaf,
  operatorsOf,
  shapeOf,
  sources,
  takesList,
  takesNone,
} from './rules.ts'

const pathsOf = (row: Row, before = ''): readonly (readonly [string, unknown])[] =>
  Object.entries(row).flatMap(([name, value]): readonly (readonly [string, unknown])[] =>
    isObject(value) ? pathsOf(value, `${before}${name}.`) : [[before + name, value]],
  )

/** The properties that users have, with the values that the newest of them have. */
const useProperties = () => {
  const { path } = useProject()
  const { data } = useQuery({
    queryKey: ['user properties', path.projectId],
    staleTime: 60_000,
    queryFn: async () => {
      const found = new Map<string, Set<unknown>>()
      for (const user of (await call(listUsers, { path, query: { limit: 100 } })).data)
        for (const [name, value] of pathsOf(user.properties as Row))
          if (value !== null) found.set(name, (found.get(name) ?? new Set()).add(value))
      return found
    },
  })
  return data ?? new Map<string, Set<unknown>>()
}

/** Names of what the events of a name have as numbers. */
const useNumbers = (event: unknown) => {
  const { path } = useProject()
  const { data } = useQuery({
    queryKey: ['event properties', path.projectId],
    staleTime: 60_000,
    queryFn: async () => (await call(listEventNames, { path, query: { limit: 100 } })).data,
  })
  const properties = data?.find(({ event_name }) => event_name === event)?.properties ?? []
  return properties.filter(({ types }) => types.includes('number')).map(({ path: name }) => name)
}

type RowProps = { readonly leaf: Leaf; readonly place: string; readonly onChange: (next: Leaf) => void }

const Value = ({ leaf, place, onChange }: RowProps) => {
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

const Subject = ({ leaf, place, onChange }: RowProps) => {
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

const Condition = ({
  leaf,
  place,
  error,
  onChange,
  onRemove,
}: RowProps & { readonly error: string | undefined; readonly onRemove: () => void }) => (
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

const Where = ({ leaf, place, onChange }: RowProps) => {
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

const joins = [
  { value: 'and', label: 'All hold' },
  { value: 'or', label: 'One holds' },
  { value: 'none', label: 'None holds' },
]

/** The conditions of a segment as rows, in groups. */
export const Conditions = ({
  group,
  onChange,
  errors = {},
  path = 'rules',
  before = '',
}: {
  group: Group
  onChange: (next: Group) => void
  /** What is wrong, by the place that the server names. */
  errors?: Readonly<Record<string, string>>
  path?: string
  before?: string
}) => {
  const set = (items: readonly Node[]) => onChange({ ...group, items })
  const isAlone = group.join === 'none' && group.items.length === 1
  const inner = group.join === 'none' ? (isAlone ? `${path}.not` : `${path}.not.or`) : `${path}.${group.join}`
  const errorAt = (place: string) => Object.entries(errors).find(([field]) => field.startsWith(place))?.[1]
  return (
    <Stack gap={8}>
      {(group.items.length > 1 || group.join !== 'and' || before !== '') && (
        <div>
          <SegmentedControl
            size="xs"
            aria-label={before ? `Group ${before}` : 'How conditions join'}
            data={joins}
            value={group.join}
            onChange={(join) => onChange({ ...group, join: join as Join })}
          />
        </div>
      )}
      {group.items.map((item, at) => {
        const place = `${before}${at + 1}`
        const here = isAlone ? inner : `${inner}[${at}]`
        const replace = (next: Node) => set(group.items.map((one, n) => (n === at ? next : one)))
        const remove = () => set(group.items.filter((_, n) => n !== at))
        return isGroup(item) ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: conditions have no identifier
          <div key={at} className="condition-group">
            <Conditions group={item} onChange={replace} errors={errors} path={here} before={`${place}.`} />
            <Button mt={4} size="compact-xs" variant="subtle" color="gray" onClick={remove}>
              Remove this group
            </Button>
          </div>
        ) : (
          <Condition
            // biome-ignore lint/suspicious/noArrayIndexKey: conditions have no identifier
            key={at}
            leaf={item}
            place={place}
            error={errorAt(here)}
            onChange={replace}
            onRemove={remove}
          />
        )
      })}
      <Line gap={6}>
        <Button
          size="xs"
          variant="default"
          leftSection={<Plus size={14} />}
          onClick={() => set([...group.items, newLeaf('property')])}
        >
          Add condition
        </Button>
        {before === '' && (
          <Button
            size="xs"
            variant="subtle"
            color="gray"
            leftSection={<FolderPlus size={14} />}
            onClick={() => set([...group.items, { join: 'or', items: [newLeaf('property')] }])}
          >
            Add group
          </Button>
        )}
      </Line>
    </Stack>
  )
}
