import { Button, Menu, Text } from '@mantine/core'
import { Columns3, Plus } from 'lucide-react'
import { useState } from 'react'
import { callAny } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { More } from '../parts/more.tsx'
import { useAddress, useProject } from '../parts/page.tsx'
import { RowButton } from '../parts/row_button.tsx'
import { count, Empty } from '../parts/states.tsx'
import { ColumnDrawer } from './column_drawer.tsx'
import { type Collection, type CollectionColumn, one, typeWords } from './data.ts'
import { Frame } from './frame.tsx'
import { shownText } from './values.ts'

/** The rules of a column in a few words. */
export const rulesOf = (column: CollectionColumn): readonly string[] => {
  const { nullable, unique, max_length, min, max, references, dimensions, moderated } = column
  const choices = column.enum
  return [
    nullable ? '' : 'needed',
    unique ? 'no two the same' : '',
    max_length ? `at most ${count(max_length)} letters` : '',
    min !== null && max !== null
      ? `${count(min)} to ${count(max)}`
      : min !== null
        ? `at least ${count(min)}`
        : max !== null
          ? `at most ${count(max)}`
          : '',
    choices
      ? `one of ${choices.slice(0, 4).join(', ')}${choices.length > 4 ? ` and ${choices.length - 4} more` : ''}`
      : '',
    references ? `refers to ${references.collection}` : '',
    dimensions ? `${count(dimensions)} numbers` : '',
    moderated ? 'moderated' : '',
  ].filter((words) => words !== '')
}
const presetWords = (column: CollectionColumn): string => {
  const preset = column.default as { $fn?: string } | string | number | boolean | null
  if (preset === null || preset === undefined) return ''
  if (typeof preset === 'object' && preset.$fn)
    return preset.$fn === 'now' ? 'the moment it is added' : preset.$fn === 'user_id' ? 'its owner' : 'a new identifier'
  return shownText(column, preset)
}

const Content = ({ collection }: { collection: Collection }) => {
  const { path } = useProject()
  const [{ column }, setAddress] = useAddress<'column'>()
  const [dropped, setDropped] = useState<string>()
  const [isDropping, setDropping] = useState(false)
  const { columns, name } = collection
  return (
    <>
      <section className="card" data-flush aria-label="Columns">
        {columns.length === 0 ? (
          <Empty
            icon={<Columns3 size={22} />}
            title="No columns yet"
            action={<Button onClick={() => setAddress({ column: '+' }, false)}>Add column</Button>}
          >
            Every row has an id, its owner and its times already.
          </Empty>
        ) : (
          <table className="table" data-stack aria-label="Columns">
            <thead>
              <tr>
                <th scope="col">Column</th>
                <th scope="col">Holds</th>
                <th scope="col">Rules</th>
                <th scope="col">In a new row</th>
                <th scope="col">
                  <span className="only-read">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {columns.map((one) => (
                <tr key={one.name}>
                  <td>
                    <RowButton onClick={() => setAddress({ column: one.name }, false)}>{one.name}</RowButton>
                  </td>
                  <td data-label="Holds">{typeWords[one.type]}</td>
                  <td data-label="Rules">{rulesOf(one).join(', ') || '—'}</td>
                  <td data-label="In a new row">{presetWords(one) || 'nothing'}</td>
                  <td data-number>
                    <More label={`More about ${one.name}`} isSmall>
                      <Menu.Item onClick={() => setAddress({ column: one.name }, false)}>Change</Menu.Item>
                      <Menu.Item
                        c="var(--bad)"
                        onClick={() => {
                          setDropped(one.name)
                          setDropping(true)
                        }}
                      >
                        Drop column
                      </Menu.Item>
                    </More>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </section>
      <Text size="sm" c="dimmed" mt="sm">
        Besides these every row has an id, {collection.owner_scope === 'group' ? 'its group, its writer' : 'its owner'},
        and the times when it was added and changed.
      </Text>
      <ColumnDrawer collection={collection} name={column} onClose={() => setAddress({ column: undefined })} />
      <Confirm
        title={`Drop ${dropped}`}
        verb="Drop column"
        said={`The column “${dropped}” is dropped.`}
        isOpen={isDropping}
        onClose={() => setDropping(false)}
        typed={dropped ?? ''}
        run={() =>
          callAny(`DELETE ${one}/columns/{column}`, {
            path: { ...path, name, column: dropped },
            query: { confirm: dropped },
          })
        }
      >
        The values of “{dropped}” in {count(collection.row_count_estimate)} rows go for good, with indexes on it.
      </Confirm>
    </>
  )
}

/** The columns of a collection. */
export const Page = () => {
  const [, setAddress] = useAddress<'column'>()
  return (
    <Frame
      actions={() => (
        <Button leftSection={<Plus size={16} />} onClick={() => setAddress({ column: '+' }, false)}>
          Add column
        </Button>
      )}
    >
      {(collection) => <Content collection={collection} />}
    </Frame>
  )
}
