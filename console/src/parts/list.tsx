import { Button, Group, Text, TextInput } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { Search } from 'lucide-react'
import { type ReactNode, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { callAny, type Reply } from '../api.ts'
import { useAddress, useProject } from './page.tsx'
import { Failure, Rows } from './states.tsx'
import { type Shown, useTelling } from './telling.ts'

export type Column<R> = Shown<R> & { readonly isNumber?: boolean }

type ListProps<R> = {
  readonly name: string
  /** `GET /v1/...`, with `{projectId}` and other parameters from `path`. */
  readonly operation: string
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly columns: readonly Column<R>[]
  readonly keyOf?: (row: R) => string
  /** Where a row leads: the whole row is the target of the pointer, the link in its first column that of the keyboard. */
  readonly to?: (row: R) => string | undefined
  readonly onOpen?: (row: R) => void
  readonly empty: ReactNode
  /** Which rows are shown, where the server answers all and does not filter. */
  readonly only?: (row: R) => boolean
  /** Milliseconds after which the rows are read again. */
  readonly every?: number
  readonly limit?: number
  /** Inside a card: without a frame of its own. */
  readonly isInside?: boolean
  /** Told how many rows there are, where the server says so. */
  readonly onTotal?: (total: number | undefined) => void
}

const pageSize = 50
const rowHeight = 49

/** The rows of a list, page by page: by cursor where the server answers one, else by offset. */
export const useRows = <R,>({
  operation,
  path,
  query = {},
  every,
  limit = pageSize,
}: Pick<ListProps<R>, 'operation' | 'path' | 'query' | 'every' | 'limit'>) => {
  const { path: project } = useProject()
  const list = useInfiniteQuery({
    queryKey: [operation, { ...project, ...path }, query, limit],
    initialPageParam: {} as { offset?: number; cursor?: string },
    queryFn: ({ pageParam }) =>
      callAny(operation, { path: { ...project, ...path }, query: { limit, ...query, ...pageParam } }),
    getNextPageParam: (last: Reply, pages) => {
      const next = last.pagination ? last.pagination.next_cursor : last.next_cursor
      if (next) return { cursor: next }
      if (next === null || last.total === undefined) return undefined
      const seen = pages.reduce((sum, { data }) => sum + (data as readonly unknown[]).length, 0)
      return seen < last.total ? { offset: seen } : undefined
    },
    placeholderData: (before) => before,
    ...(every ? { refetchInterval: every } : {}),
  })
  const rows = useMemo(() => list.data?.pages.flatMap(({ data }) => data as readonly R[]) ?? [], [list.data])
  return { list, rows, total: list.data?.pages[0]?.total }
}

const Head = <R,>({ columns }: { columns: readonly Column<R>[] }) => (
  <tr>
    {columns.map(({ title, isNumber }) => (
      <th key={title} scope="col" data-number={isNumber || undefined}>
        {title === 'Actions' ? <span className="only-read">{title}</span> : title}
      </th>
    ))}
  </tr>
)

const Cells = <R,>({ columns, row }: { columns: readonly Column<R>[]; row: R }) =>
  columns.map(({ title, show, isNumber }, column) => (
    <td key={title} data-number={isNumber || undefined} {...(column > 0 ? { 'data-label': title } : {})}>
      {column > 0 ? <div>{show(row)}</div> : show(row)}
    </td>
  ))

/** A table of rows that are all there, for a card that it fills; on a phone each row is a card. */
export const ShortTable = <R,>(props: {
  readonly name: string
  readonly columns: readonly Column<R>[]
  readonly rows: readonly R[]
  readonly keyOf: (row: R) => string
}) => {
  const { columns, words } = useTelling(props.columns, props.rows)
  return (
    <>
      <section className="scroll-x" tabIndex={0} aria-label={props.name}>
        <table className="table" data-stack aria-label={props.name}>
          <thead>
            <Head columns={columns} />
          </thead>
          <tbody>
            {props.rows.map((row) => (
              <tr key={props.keyOf(row)}>
                <Cells columns={columns} row={row} />
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {words && (
        <Text size="sm" c="dimmed" px="md" py="xs">
          {words}
        </Text>
      )}
    </>
  )
}

/** A list as a table; on a phone each row is a card. Only the rows near the screen are in the document. */
export const List = <R extends object>(props: ListProps<R>) => {
  const { name, columns: all, to, onOpen, empty, onTotal, isInside = false } = props
  const frame = isInside ? { className: 'inside' } : { className: 'card', 'data-flush': true }
  const keyOf = props.keyOf ?? ((row: R) => String((row as { id?: unknown }).id))
  const { list, rows: read, total } = useRows<R>(props)
  const rows = props.only ? read.filter(props.only) : read
  const [address] = useAddress<string>()
  const filters = Object.values(address).map(String)
  const isNarrowed = Object.values(props.query ?? {}).some((value) => filters.includes(String(value)))
  const { columns, words } = useTelling(all, read, isNarrowed)
  const { at } = useProject()
  const go = useNavigate()
  const body = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  useLayoutEffect(() => setTop(body.current?.offsetTop ?? 0), [])
  useEffect(() => onTotal?.(total), [total, onTotal])
  const virtual = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => rowHeight,
    overscan: 10,
    scrollMargin: top,
    getItemKey: (index) => keyOf(rows[index] as R),
  })
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = list
  const shown = virtual.getVirtualItems()
  const last = shown.at(-1)?.index ?? 0
  // the next page comes before its place is reached, once the first was scrolled through
  useEffect(() => {
    if (rows.length > pageSize && last >= rows.length - 10 && hasNextPage && !isFetchingNextPage) void fetchNextPage()
  }, [last, rows.length, hasNextPage, isFetchingNextPage, fetchNextPage])
  if (list.error && rows.length === 0) return <Failure error={list.error} onRetry={list.refetch} />
  if (list.isPending)
    return (
      <div {...frame} ref={body}>
        <Rows />
      </div>
    )
  if (rows.length === 0)
    return (
      <div className={isInside ? 'inside' : 'card'} ref={body}>
        {empty}
      </div>
    )
  const [before, after] = [(shown[0]?.start ?? top) - top, virtual.getTotalSize() - ((shown.at(-1)?.end ?? top) - top)]
  const open = (row: R) => {
    const place = to?.(row)
    if (onOpen) onOpen(row)
    else if (place) void go({ to: at(place) as never })
  }
  const isLink = to !== undefined || onOpen !== undefined
  return (
    <>
      {list.error && <Failure error={list.error} onRetry={list.refetch} />}
      <div {...frame} ref={body}>
        <section className="scroll-x" tabIndex={0} aria-label={isInside ? `${name}: rows` : name}>
          <table className="table" data-stack aria-label={name} aria-rowcount={total ?? rows.length}>
            <thead>
              <Head columns={columns} />
            </thead>
            <tbody>
              {before > 0 && (
                <tr aria-hidden>
                  <td colSpan={columns.length} className="gap" style={{ height: before }} />
                </tr>
              )}
              {shown.map(({ key, index }) => {
                const row = rows[index] as R
                return (
                  <tr
                    key={key as string}
                    data-index={index}
                    ref={virtual.measureElement}
                    aria-rowindex={index + 1}
                    data-link={isLink || undefined}
                    onClick={(event) => {
                      const isControl = (event.target as Element).closest('a, button, input, label, [role=menuitem]')
                      if (isLink && !isControl) open(row)
                    }}
                  >
                    <Cells columns={columns} row={row} />
                  </tr>
                )
              })}
              {after > 0 && (
                <tr aria-hidden>
                  <td colSpan={columns.length} className="gap" style={{ height: after }} />
                </tr>
              )}
            </tbody>
          </table>
        </section>
      </div>
      <Group justify="space-between" mt="sm" className={isInside ? 'inside-foot' : undefined}>
        <Text size="sm" c="dimmed" role="status">
          {total === undefined || total === rows.length ? `${rows.length} shown` : `${rows.length} of ${total}`}
          {words && `. ${words}`}
        </Text>
        {hasNextPage && (
          <Button variant="default" size="xs" loading={isFetchingNextPage} onClick={() => fetchNextPage()}>
            Show more
          </Button>
        )}
      </Group>
    </>
  )
}

/** A search whose text stands in the address: it can be sent to somebody, and "back" comes back to it. */
export const SearchBox = ({
  label,
  placeholder,
  name = 'q',
}: {
  label: string
  placeholder?: string
  name?: string
}) => {
  const [address, setAddress] = useAddress<string>()
  const [text, setText] = useState(address[name] ?? '')
  const [settled] = useDebouncedValue(text, 200)
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if ((address[name] ?? '') !== settled) void setAddress({ [name]: settled || undefined })
  }, [settled])
  return (
    <TextInput
      ref={input}
      type="search"
      leftSection={<Search size={15} />}
      aria-label={label}
      placeholder={placeholder ?? label}
      value={text}
      onChange={(event) => setText(event.currentTarget.value)}
      w={300}
      maw="100%"
    />
  )
}
