import { Group, Text } from '@mantine/core'
import { When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { type Item, reasonsOf, spaced, textOf } from './item.ts'

/** The items of the queue below each other, of which one is open. */
export const QueueList = ({
  items,
  at,
  onSelect,
}: {
  items: readonly Item[]
  at: number
  onSelect: (index: number) => void
}) => (
  <ul className="card queue-list" data-flush aria-label="Items">
    {items.map((item, index) => (
      <li key={item.id}>
        <button
          type="button"
          className="queue-item"
          aria-current={index === at || undefined}
          onClick={() => onSelect(index)}
        >
          <span className="queue-text">{textOf(item)}</span>
          <span className="cell-sub">
            {spaced(item.subject_type)} · {reasonsOf(item)}
          </span>
          <Group gap={6} mt={2}>
            {item.priority >= 3 && <Status value="urgent" meaning="bad" />}
            <Text size="xs" c="dimmed" component="span">
              <When at={item.created_at} />
            </Text>
          </Group>
        </button>
      </li>
    ))}
  </ul>
)
