import { ActionIcon, Button, SegmentedControl, Text, TextInput } from '@mantine/core'
import { ChevronDown, ChevronRight, Search, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { Failure, Rows, When } from '../parts/states.tsx'
import { nameOf, quoted, type Table, useTables } from './data.ts'
import type { Queries } from './kept.ts'

const TableEntry = ({
  table,
  all,
  onInsert,
}: {
  table: Table
  all: readonly Table[]
  onInsert: (text: string) => void
}) => {
  const [isOpen, setOpen] = useState(false)
  const id = `sql-columns-${table.schema}-${table.name}`
  return (
    <li>
      <div className="sql-table">
        <ActionIcon
          size={24}
          variant="subtle"
          color="gray"
          aria-label={`Columns of ${table.name}`}
          aria-expanded={isOpen}
          aria-controls={id}
          onClick={() => setOpen(!isOpen)}
        >
          {isOpen ? <ChevronDown size={14} /> : <ChevronRight size={14} />}
        </ActionIcon>
        <button type="button" className="sql-name" onClick={() => onInsert(nameOf(table, all))}>
          {table.name}
        </button>
      </div>
      {isOpen && (
        <ul id={id} className="sql-columns">
          {table.columns.map(({ name, type }) => (
            <li key={name}>
              <button type="button" className="sql-name" onClick={() => onInsert(quoted(name))}>
                <span>{name}</span> <span className="sql-type">{type}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </li>
  )
}

const titles: Readonly<Record<string, string>> = { collections: 'Collections', app: 'Trellis' }

const Tables = ({ onInsert }: { onInsert: (text: string) => void }) => {
  const { data, error, isPending, refetch } = useTables()
  const [text, setText] = useState('')
  if (error) return <Failure error={error} onRetry={refetch} />
  if (isPending) return <Rows count={10} height={28} />
  const wanted = text.trim().toLowerCase()
  const shown = data.filter(
    ({ name, columns }) =>
      name.includes(wanted) || (wanted.length > 2 && columns.some((one) => one.name.includes(wanted))),
  )
  return (
    <>
      <TextInput
        size="xs"
        aria-label="Find a table or a column"
        placeholder="Find a table or a column"
        leftSection={<Search size={13} />}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <section className="sql-list" aria-label="Tables">
        {[...new Set(shown.map(({ schema }) => schema))].map((schema) => (
          <div key={schema}>
            <div className="nav-title">{titles[schema] ?? schema}</div>
            <ul>
              {shown
                .filter((table) => table.schema === schema)
                .map((table) => (
                  <TableEntry key={table.name} table={table} all={data} onInsert={onInsert} />
                ))}
            </ul>
          </div>
        ))}
        {shown.length === 0 && (
          <Text size="sm" c="dimmed" p="xs">
            No table or column has this in its name.
          </Text>
        )}
      </section>
    </>
  )
}

const Saved = ({ queries, onOpen }: { queries: Queries; onOpen: (sql: string) => void }) =>
  queries.named.length === 0 ? (
    <Text size="sm" c="dimmed" p="xs">
      Queries that you save have a name, and stand here, in this browser. To share one, send the address of the page.
    </Text>
  ) : (
    <ul className="sql-list">
      {queries.named.map(({ name, sql }) => (
        <li key={name} className="sql-table">
          <button type="button" className="sql-name" onClick={() => onOpen(sql)}>
            {name}
          </button>
          <ActionIcon
            size={24}
            variant="subtle"
            color="gray"
            aria-label={`Delete ${name}`}
            onClick={() => queries.remove(name)}
          >
            <Trash2 size={13} />
          </ActionIcon>
        </li>
      ))}
    </ul>
  )

const History = ({ queries, onOpen }: { queries: Queries; onOpen: (sql: string) => void }) =>
  queries.ran.length === 0 ? (
    <Text size="sm" c="dimmed" p="xs">
      The last twenty queries that you run stand here, in this browser.
    </Text>
  ) : (
    <>
      <ul className="sql-list">
        {queries.ran.map(({ sql, at }) => (
          <li key={sql}>
            <button type="button" className="sql-name sql-ran" onClick={() => onOpen(sql)}>
              <span className="mono">{sql.replace(/\s+/g, ' ').slice(0, 120)}</span>
            </button>
            <Text size="xs" c="dimmed" px={6} component="div">
              <When at={at} />
            </Text>
          </li>
        ))}
      </ul>
      <Button size="compact-xs" variant="subtle" color="gray" onClick={() => queries.forgetAll()}>
        Forget all
      </Button>
    </>
  )

type Side = 'tables' | 'saved' | 'history'

/** What a query is written from: tables with their columns, queries with a name, and those that were run last. */
export const SideList = ({
  queries,
  onInsert,
  onOpen,
}: {
  queries: Queries
  onInsert: (text: string) => void
  onOpen: (sql: string) => void
}) => {
  const [side, setSide] = useState<Side>('tables')
  return (
    <aside className="card sql-side" aria-label="Tables and queries">
      <SegmentedControl
        size="xs"
        fullWidth
        aria-label="What is shown"
        value={side}
        onChange={(next) => setSide(next as Side)}
        data={[
          { value: 'tables', label: 'Tables' },
          { value: 'saved', label: 'Saved' },
          { value: 'history', label: 'History' },
        ]}
      />
      {side === 'tables' && <Tables onInsert={onInsert} />}
      {side === 'saved' && <Saved queries={queries} onOpen={onOpen} />}
      {side === 'history' && <History queries={queries} onOpen={onOpen} />}
    </aside>
  )
}
