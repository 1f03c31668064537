import { useEffect, useRef, useState } from 'preact/hooks'
import { call, type Row } from '../api.ts'
import { Refusal } from '../form.tsx'
import { useLoaded } from '../load.ts'
import type { PageProps } from '../page_props.ts'
import { type Column, textOfCell, valueOfCell } from '../parts/cells.ts'
import { TextField } from '../parts/field.tsx'
import { Table } from '../parts/table.tsx'
import { texts } from '../texts.ts'

type Definition = {
  readonly name: string
  readonly columns: readonly Column[]
  readonly owner_scope: string
  readonly read_policy: string
  readonly write_policy: string
  readonly row_count_estimate: number
}

const pageSize = 50
const rowPath = '/v1/admin/projects/{projectId}/collections/{name}'

type CellProps = {
  readonly row: Row
  readonly column: Column
  readonly onSave: (value: unknown) => Promise<void>
}

/** A cell is a button until it is pressed; Enter stores, Escape leaves it as it was. */
const Cell = ({ row, column, onSave }: CellProps) => {
  const shown = textOfCell(row[column.name])
  const [text, setText] = useState<string>()
  const [isWrong, setWrong] = useState(false)
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => input.current?.focus(), [text === undefined])
  const label = texts.cell(column.name, String(row['id']))
  if (text === undefined)
    return (
      <button
        type="button"
        class="cell"
        aria-label={`${label}: ${shown || texts.empty}`}
        onClick={() => setText(shown)}
      >
        {shown || '·'}
      </button>
    )
  const save = async () => {
    if (text === shown) return setText(undefined)
    try {
      await onSave(valueOfCell(column, text))
      setText(undefined)
    } catch {
      setWrong(true)
    }
  }
  return (
    <input
      ref={input}
      value={text}
      aria-label={label}
      aria-invalid={isWrong}
      onInput={(event) => setText(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === 'Enter') void save()
        if (event.key === 'Escape') setText(undefined)
      }}
    />
  )
}

type Plan = {
  readonly plan: readonly string[]
  readonly scans: readonly { readonly table: string | null; readonly index: string | null; readonly rows: number }[]
}

/** The plan of the query that the grid shows, for the administrator or as a user of the app would ask it. */
const Explain = ({ path, query }: { path: Row; query: Row }) => {
  const [user, setUser] = useState('')
  const [plan, setPlan] = useState<Plan>()
  const [failure, setFailure] = useState<unknown>()
  const ask = async (event: Event) => {
    event.preventDefault()
    setFailure(undefined)
    setPlan(undefined)
    try {
      const body = { ...query, ...(user === '' ? {} : { user_id: user }) }
      setPlan((await call(`POST ${rowPath}/explain`, { path, body })).data as Plan)
    } catch (reason) {
      setFailure(reason)
    }
  }
  return (
    <details>
      <summary>{texts.explain}</summary>
      <form class="row" onSubmit={ask} aria-label={texts.explain}>
        <TextField label={texts.explainAs} value={user} onValue={setUser} />
        <button type="submit">{texts.explainRun}</button>
      </form>
      <Refusal error={failure} />
      {plan && (
        <>
          <Table label={texts.explain} columns={texts.scanColumns}>
            {plan.scans.map(({ table, index, rows }, n) => (
              <tr key={n}>
                <td>{table}</td>
                <td>{index}</td>
                <td>{rows}</td>
              </tr>
            ))}
          </Table>
          <pre>{plan.plan.join('\n')}</pre>
        </>
      )}
    </details>
  )
}

/** The rows of a collection as a grid: filtered, paged, edited in place, with the policies that hold for apps. */
export const CollectionGrid = ({ projectId, id: name }: PageProps) => {
  const path = { projectId, name }
  const definition = useLoaded(
    `collection ${name}`,
    async () => (await call(`GET ${rowPath}`, { path })).data as Definition,
  )
  const [filter, setFilter] = useState('')
  const [asked, setAsked] = useState('')
  const [offset, setOffset] = useState(0)
  const [failure, setFailure] = useState<unknown>()
  const [said, setSaid] = useState('')
  const query = () => ({ limit: pageSize, offset, ...(asked === '' ? {} : { filter: JSON.parse(asked) }) })
  const rows = useLoaded(
    `rows ${name} ${asked} ${offset}`,
    async () => (await call(`POST ${rowPath}/find`, { path, body: query() })).data as readonly Row[],
  )
  const apply = (event: Event) => {
    event.preventDefault()
    setOffset(0)
    setAsked(filter)
  }
  const save = async (row: Row, column: string, value: unknown) => {
    setFailure(undefined)
    try {
      await call(`PATCH ${rowPath}/rows/{id}`, { path: { ...path, id: row['id'] }, body: { [column]: value } })
      setSaid(texts.saved)
      rows.again()
    } catch (reason) {
      setFailure(reason)
      throw reason
    }
  }
  const columns = definition.value?.columns ?? []
  return (
    <>
      <h1>{name}</h1>
      {definition.value && (
        <p>
          {texts.policies(definition.value.owner_scope, definition.value.read_policy, definition.value.write_policy)}
        </p>
      )}
      <form class="row" onSubmit={apply} aria-label={texts.filters}>
        <TextField label={texts.filterJson} value={filter} onValue={setFilter} />
        <button type="submit">{texts.apply}</button>
      </form>
      <Refusal error={failure ?? rows.error ?? definition.error} />
      {rows.value && <Explain key={asked} path={path} query={query()} />}
      <p role="status">{said}</p>
      {rows.value && rows.value.length === 0 && <p>{texts.nothing}</p>}
      {rows.value && rows.value.length > 0 && (
        <Table
          label={texts.rows}
          columns={[
            'id',
            ...columns.map((column) => (
              <>
                {column.name} <small>{column.type}</small>
              </>
            )),
          ]}
        >
          {rows.value.map((row) => (
            <tr key={String(row['id'])}>
              <td>{String(row['id']).slice(-12)}</td>
              {columns.map((column) => (
                <td key={column.name}>
                  <Cell row={row} column={column} onSave={(value) => save(row, column.name, value)} />
                </td>
              ))}
            </tr>
          ))}
        </Table>
      )}
      <nav class="pages" aria-label={texts.pages}>
        <button type="button" disabled={offset === 0} onClick={() => setOffset(Math.max(0, offset - pageSize))}>
          {texts.previous}
        </button>
        <button
          type="button"
          disabled={(rows.value?.length ?? 0) < pageSize}
          onClick={() => setOffset(offset + pageSize)}
        >
          {texts.next}
        </button>
      </nav>
    </>
  )
}
