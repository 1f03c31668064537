import { Button, Group as Line, SegmentedControl, Stack } from '@mantine/core'
import { FolderPlus, Plus } from 'lucide-react'
import { Condition } from './condition.tsx'
import { newLeaf } from './leaves.ts'
import { type Group, isGroup, type Join, type Node } from './rules.ts'

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
