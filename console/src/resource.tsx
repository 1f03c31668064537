import { useState } from 'preact/hooks'
import { call, type Reply, type Row } from './api.ts'
import { type Callable, type Document, filtersOf, inputOf, type Resource } from './document.ts'
import { Form, Refusal } from './form.tsx'
import { useLoaded } from './load.ts'
import { pages } from './pages.ts'
import { Table } from './parts/table.tsx'
import { go } from './router.ts'
import { resolved, type Schema } from './schema.ts'
import { texts } from './texts.ts'

type Props = {
  readonly document: Document
  readonly resource: Resource
  readonly projectId: string
  readonly address: URL
}

const shown = (value: unknown): string => {
  if (value === null || value === undefined) return ''
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  return text.length > 120 ? `${text.slice(0, 119)}…` : text
}

const linkTo = (address: URL, changes: Readonly<Record<string, string | undefined>>) => {
  const next = new URL(address)
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === '') next.searchParams.delete(name)
    else next.searchParams.set(name, value)
  }
  return `${next.pathname}${next.search}`
}

/** Names people know rows by come first, then the small values. */
const columnsOf = (rows: readonly Row[]): readonly string[] => {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const rank = (name: string) => {
    const known = ['name', 'display_name', 'key', 'title', 'email', 'event_name', 'action', 'status'].indexOf(name)
    if (known >= 0) return known
    return rows.some((row) => typeof row[name] === 'object' && row[name] !== null) ? 30 : name.endsWith('id') ? 20 : 10
  }
  return names.sort((one, other) => rank(one) - rank(other)).slice(0, 6)
}

const Filters = ({ document, resource, address }: Omit<Props, 'projectId'>) => {
  const filters = filtersOf(document, resource.list).filter(({ name }) => !['limit', 'offset', 'cursor'].includes(name))
  if (filters.length === 0) return null
  const properties = Object.fromEntries(filters.map(({ name, schema }) => [name, schema as Schema]))
  const row = Object.fromEntries(filters.map(({ name }) => [name, address.searchParams.get(`q.${name}`) ?? undefined]))
  const apply = async (body: Record<string, unknown>) => {
    const changes = Object.entries(body).map(([name, value]) => [`q.${name}`, shown(value)])
    go(linkTo(address, { offset: undefined, cursor: undefined, ...Object.fromEntries(changes) }))
  }
  const clear = () => go(address.pathname)
  return (
    <details open={Object.values(row).some((value) => value !== undefined)}>
      <summary>{texts.filters}</summary>
      <Form
        key={address.search}
        name={texts.filters}
        schema={{ properties }}
        named={{}}
        row={row}
        submit={texts.apply}
        onSubmit={apply}
      />
      <button type="button" class="quiet" onClick={clear}>
        {texts.cancel}
      </button>
    </details>
  )
}

const Pages = ({ reply, address }: { reply: Reply; address: URL }) => {
  const rows = reply.data as readonly Row[]
  const offset = Number(address.searchParams.get('offset') ?? 0)
  const { total, next_cursor: cursor } = reply
  const to = offset + rows.length
  return (
    <nav class="pages" aria-label={texts.next}>
      {total !== undefined && rows.length > 0 && <span>{texts.count(offset + 1, to, total)}</span>}
      {offset > 0 && <a href={linkTo(address, { offset: String(Math.max(0, offset - 50)) })}>{texts.previous}</a>}
      {total !== undefined && to < total && <a href={linkTo(address, { offset: String(to) })}>{texts.next}</a>}
      {cursor && <a href={linkTo(address, { cursor })}>{texts.next}</a>}
    </nav>
  )
}

const Rows = ({ rows, resource, address }: { rows: readonly Row[]; resource: Resource; address: URL }) => {
  const columns = columnsOf(rows)
  const cell = (row: Row, column: string, index: number) => {
    // what its own path takes, such as the name of a collection
    const id = row[resource.id ?? 'id'] ?? row['id'] ?? row['key']
    const text = shown(row[column])
    return index === 0 && id !== undefined ? (
      <a href={linkTo(address, { item: String(id) })}>{text || texts.open}</a>
    ) : (
      text
    )
  }
  return (
    <Table label={resource.title} columns={columns.map((column) => column.replaceAll('_', ' '))}>
      {rows.map((row, line) => (
        <tr key={String(row['id'] ?? line)}>
          {columns.map((column, index) => (
            <td key={column}>{cell(row, column, index)}</td>
          ))}
        </tr>
      ))}
    </Table>
  )
}

const List = (props: Props) => {
  const { document, resource, projectId, address } = props
  const known = filtersOf(document, resource.list).map(({ name }) => name)
  const query: Record<string, string> = known.includes('limit') ? { limit: '50' } : {}
  for (const name of known) {
    const value = address.searchParams.get(['offset', 'cursor'].includes(name) ? name : `q.${name}`)
    if (value !== null) query[name] = value
  }
  const load = () => call(resource.list.call, { path: { projectId }, query })
  const { value, error } = useLoaded(`${resource.list.call} ${projectId} ${JSON.stringify(query)}`, load)
  const rows = (value?.data ?? []) as readonly Row[]
  return (
    <>
      <h1>{resource.title}</h1>
      <p>{resource.list.summary}</p>
      <p class="actions">
        {pages
          .filter(({ listOf }) => listOf === resource.path)
          .map(({ path, title }) => (
            <a key={path} href={`/console/projects/${projectId}/${path}`}>
              {title}
            </a>
          ))}
        {[resource.create, ...resource.tools].map(
          (operation) =>
            operation && (
              <a key={operation.operationId} href={linkTo(address, { do: operation.operationId })}>
                {operation.summary}
              </a>
            ),
        )}
      </p>
      <Filters {...props} />
      <Refusal error={error} />
      {!value && !error && <p role="status">{texts.loading}</p>}
      {value && rows.length === 0 && <p>{texts.nothing}</p>}
      {rows.length > 0 && <Rows rows={rows} resource={resource} address={address} />}
      {value && <Pages reply={value} address={address} />}
    </>
  )
}

type PerformProps = Omit<Props, 'resource'> & {
  readonly operation: Callable
  readonly path: Row
  readonly row?: Row
  readonly submit?: string
  readonly onDone?: () => void
}

/** One operation: its form, and what it answered. */
const Perform = ({ document, operation, path, row, submit, onDone }: PerformProps) => {
  const [answer, setAnswer] = useState<unknown>()
  const schema = inputOf(operation)
  const inBody = Object.keys(resolved(schema ?? {}, document.components.schemas).properties ?? {})
  // parameters of the query are fields as well; a dry run is a button of its own
  const parameters = filtersOf(document, operation).filter(({ name }) => !inBody.includes(name))
  const canTry = parameters.some(({ name }) => name === 'dry_run')
  const asked = parameters.filter(({ name }) => name !== 'dry_run')
  const fields: Schema = {
    allOf: [schema ?? {}, { properties: Object.fromEntries(asked.map((one) => [one.name, one.schema])) }],
  }
  const perform = async (values: Record<string, unknown>, isTrial: boolean) => {
    const isAsked = ([name]: readonly [string, unknown]) => asked.some((one) => one.name === name)
    const entries = Object.entries(values)
    const body = Object.fromEntries(entries.filter((entry) => !isAsked(entry)))
    const query = { ...Object.fromEntries(entries.filter(isAsked)), ...(canTry ? { dry_run: isTrial } : {}) }
    const reply = await call(operation.call, { path, query, ...(schema ? { body } : {}) })
    setAnswer(reply.data ?? texts.done)
    if (!isTrial) onDone?.()
  }
  return (
    <>
      <Form
        name={operation.summary}
        schema={fields}
        named={document.components.schemas}
        {...(row ? { row } : {})}
        submit={submit ?? (operation.call.startsWith('POST') && !row ? texts.run : texts.save)}
        {...(canTry ? { trial: texts.dryRun } : {})}
        onSubmit={perform}
      />
      {answer !== undefined && (
        <section aria-label={texts.answer}>
          <p role="status">{texts.done}</p>
          <pre>{JSON.stringify(answer, null, 2)}</pre>
        </section>
      )}
    </>
  )
}

const Detail = (props: Props & { readonly id: string }) => {
  const { resource, projectId, address, id } = props
  const path = { projectId, [resource.id ?? 'id']: id }
  const load = async () => (resource.get ? ((await call(resource.get.call, { path })).data as Row) : undefined)
  const { value, error, again } = useLoaded(`${resource.path} ${projectId} ${id}`, load)
  const [failure, setFailure] = useState<unknown>()
  const back = linkTo(address, { item: undefined, do: undefined })
  const remove = async () => {
    if (!resource.remove || !confirm(texts.confirmRemove)) return
    await call(resource.remove.call, { path }).then(() => go(back), setFailure)
  }
  const title = value?.['name'] ?? value?.['display_name'] ?? value?.['key'] ?? id
  return (
    <>
      <p>
        <a href={back}>{texts.back}</a>
      </p>
      <h1>{shown(title)}</h1>
      <Refusal error={error ?? failure} />
      {value && (
        <dl>
          {Object.entries(value).map(([name, entry]) => (
            <div key={name}>
              <dt>{name.replaceAll('_', ' ')}</dt>
              <dd>
                {typeof entry === 'object' && entry !== null ? (
                  <pre>{JSON.stringify(entry, null, 2)}</pre>
                ) : (
                  shown(entry)
                )}
              </dd>
            </div>
          ))}
        </dl>
      )}
      {value && resource.update && (
        <>
          <h2>{resource.update.summary}</h2>
          <Perform {...props} operation={resource.update} path={path} row={value} onDone={again} />
        </>
      )}
      <p class="actions">
        {pages
          .filter(({ rowOf }) => rowOf === resource.path)
          .map(({ path: page, title }) => (
            <a key={page} href={`/console/projects/${projectId}/${page}?item=${encodeURIComponent(id)}`}>
              {title}
            </a>
          ))}
        {resource.actions.map((operation) => (
          <a key={operation.operationId} href={linkTo(address, { do: operation.operationId })}>
            {operation.summary}
          </a>
        ))}
      </p>
      {resource.remove && filtersOf(props.document, resource.remove).length > 0 && (
        <details>
          <summary>{resource.remove.summary}</summary>
          <Perform {...props} operation={resource.remove} path={path} submit={texts.remove} onDone={() => go(back)} />
        </details>
      )}
      {resource.remove && filtersOf(props.document, resource.remove).length === 0 && (
        <button type="button" class="danger" onClick={remove}>
          {texts.remove}
        </button>
      )}
    </>
  )
}

/** The pages of one kind of rows, all of them from the document: list, detail, and one for each operation. */
export const ResourcePage = (props: Props) => {
  const { resource, projectId, address } = props
  const id = address.searchParams.get('item')
  const wanted = address.searchParams.get('do')
  const operations = [resource.create, ...resource.tools, ...resource.actions]
  const operation = operations.find((one) => one?.operationId === wanted)
  if (operation) {
    const path = { projectId, ...(id && resource.id ? { [resource.id]: id } : {}) }
    return (
      <>
        <p>
          <a href={linkTo(address, { do: undefined })}>{texts.back}</a>
        </p>
        <h1>{operation.summary}</h1>
        <Perform {...props} key={operation.operationId} operation={operation} path={path} />
      </>
    )
  }
  return id ? <Detail {...props} key={id} id={id} /> : <List {...props} key={resource.path} />
}
