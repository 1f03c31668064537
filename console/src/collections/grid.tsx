// biome-ignore-all lint/a11y/useSemanticElements: rows leave the document while they are scrolled, as those of a table element cannot
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid has the focus, and names its cell by aria-activedescendant
// biome-ignore-all lint/a11y/useKeyWithClickEvents: the keys are those of the grid
import { Tooltip } from '@mantine/core'
import { useVirtualizer } from '@tanstack/react-virtual'
import { ArrowDown, ArrowUp, Maximize2, Plus } from 'lucide-react'
import { type CSSProperties, type KeyboardEvent, memo, useEffect, useRef, useState } from 'react'
import type { Row } from '../api.ts'
import { ago, exactly } from '../parts/states.tsx'
import { type CollectionColumn, isNumeric, isSystem, titleOfColumn, typeWords } from './data.ts'
import { UserName } from './names.tsx'
import { mostRows } from './use_rows.ts'
import { editedText, isWide, parsed, shownText, widthOf } from './values.ts'

const rowHeight = 34
const shortTypes: Partial<Record<CollectionColumn['type'], string>> = {
  integer: '123',
  bigint: '123',
  numeric: '1.5',
  double: '1.5',
  boolean: 'yes/no',
  timestamptz: 'time',
}

type Actions = {
  readonly activate: (row: number, column: number) => void
  readonly edit: (row: number, column: number, text?: string) => void
  readonly commit: (row: number, column: number, text: string, by: readonly [number, number]) => void
  readonly leave: () => void
  readonly open: (row: number) => void
  readonly select: (row: number, isRange: boolean) => void
}

/** The first text of a row: what people call it. */
export const rowTitle = (row: Row | undefined): string => {
  const known = Object.entries(row ?? {}).find(
    ([name, value]) => typeof value === 'string' && !/(^|_)(id|at)$/.test(name) && value !== '',
  )
  return known ? String(known[1]) : 'the row'
}

const Content = ({ column, row, isStill }: { column: CollectionColumn; row: Row; isStill: boolean }) => {
  const value = row[column.name]
  if (value === null || value === undefined) return <span className="grid-none">—</span>
  if (column.name === 'user_id') return <UserName id={String(value)} isAsked={isStill} />
  if (column.type === 'timestamptz') return <span title={exactly(String(value))}>{ago(String(value))}</span>
  if (column.references) {
    const to = row[column.name.replace(/_id$/, '')]
    if (typeof to === 'object' && to !== null) return <>{rowTitle(to as Row)}</>
  }
  if (column.type === 'uuid') return <span className="mono">{String(value).slice(0, 8)}…</span>
  return <>{shownText(column, value)}</>
}

const Editor = ({
  column,
  text,
  onCommit,
  onLeave,
}: {
  column: CollectionColumn
  text: string
  onCommit: (text: string, by: readonly [number, number]) => void
  onLeave: () => void
}) => {
  const isOver = useRef(false)
  const end = (text: string, by: readonly [number, number]) => {
    if (isOver.current) return
    isOver.current = true
    onCommit(text, by)
  }
  const common = {
    className: 'grid-editor',
    'aria-label': column.name,
    defaultValue: text,
    autoFocus: true,
    onBlur: (event: { currentTarget: { value: string } }) => end(event.currentTarget.value, [0, 0]),
    onKeyDown: (event: KeyboardEvent<HTMLInputElement | HTMLSelectElement>) => {
      event.stopPropagation()
      if (event.key === 'Escape') {
        isOver.current = true
        onLeave()
      } else if (event.key === 'Enter') end(event.currentTarget.value, [1, 0])
      else if (event.key === 'Tab') {
        event.preventDefault()
        end(event.currentTarget.value, [0, event.shiftKey ? -1 : 1])
      }
    },
  }
  if (column.enum)
    return (
      <select {...common}>
        {column.nullable && <option value="">—</option>}
        {column.enum.map((choice) => (
          <option key={String(choice)}>{String(choice)}</option>
        ))}
      </select>
    )
  const kind = column.type === 'date' ? 'date' : column.type === 'timestamptz' ? 'datetime-local' : 'text'
  // what was typed first stands in it already: the next sign comes behind it
  const onFocus = (event: { currentTarget: HTMLInputElement }) =>
    kind === 'text' && event.currentTarget.setSelectionRange(text.length, text.length)
  return (
    <input
      {...common}
      onFocus={onFocus}
      type={kind}
      inputMode={isNumeric(column.type) ? 'decimal' : undefined}
      autoComplete="off"
    />
  )
}

type LineProps = {
  readonly index: number
  readonly top: number
  readonly row: Row | undefined
  readonly columns: readonly CollectionColumn[]
  /** The column of the cursor, or -1 where it is in another row. */
  readonly active: number
  readonly edited: string | undefined
  readonly isSelected: boolean
  readonly isStill: boolean
  readonly actions: Actions
}

const Line = memo(({ index, top, row, columns, active, edited, isSelected, isStill, actions }: LineProps) => (
  <div
    role="row"
    aria-rowindex={index + 2}
    aria-selected={isSelected}
    className="grid-row"
    style={{ transform: `translateY(${top}px)` }}
  >
    <div
      role="gridcell"
      id={active === 0 ? 'grid-cursor' : undefined}
      className="grid-cell"
      data-active={active === 0 || undefined}
      aria-label={`Row ${index + 1}`}
    >
      <input
        type="checkbox"
        tabIndex={-1}
        aria-label={`Select row ${index + 1}`}
        checked={isSelected}
        disabled={!row}
        onChange={() => undefined}
        onClick={(event) => actions.select(index, event.shiftKey)}
      />
      <button
        type="button"
        tabIndex={-1}
        className="grid-open"
        aria-label={`Open row ${index + 1}`}
        onClick={() => actions.open(index)}
      >
        <Maximize2 size={13} aria-hidden />
      </button>
    </div>
    {columns.map((column, at) => {
      const isActive = active === at + 1
      return (
        <div
          key={column.name}
          role="gridcell"
          id={isActive ? 'grid-cursor' : undefined}
          className="grid-cell"
          data-number={isNumeric(column.type) || undefined}
          data-active={isActive || undefined}
          data-fixed={isSystem(column) || undefined}
          onMouseDown={(event) => {
            const cell = event.currentTarget
            cell.dataset['was'] = isActive && document.activeElement === cell.closest('.grid') ? 'active' : ''
            if (!isActive) actions.activate(index, at + 1)
          }}
          onClick={(event) => {
            // the click that brings the cursor does not edit yet
            if (event.currentTarget.dataset['was'] === 'active' && edited === undefined) actions.edit(index, at + 1)
          }}
          onDoubleClick={() => actions.edit(index, at + 1)}
        >
          {isActive && edited !== undefined ? (
            <Editor
              column={column}
              text={edited}
              onCommit={(text, by) => actions.commit(index, at + 1, text, by)}
              onLeave={actions.leave}
            />
          ) : row ? (
            <Content column={column} row={row} isStill={isStill} />
          ) : (
            <span className="grid-wait" />
          )}
        </div>
      )
    })}
  </div>
))

export type GridProps = {
  readonly name: string
  readonly columns: readonly CollectionColumn[]
  readonly total: number
  readonly rowAt: (index: number) => Row | undefined
  readonly onRange: (first: number, last: number) => void
  readonly sort: string | undefined
  readonly onSort: (sort: string | undefined) => void
  readonly selected: ReadonlySet<string>
  readonly onSelect: (ids: ReadonlySet<string>) => void
  readonly onChange: (row: Row, column: CollectionColumn, value: unknown) => void
  readonly onRefused: (error: unknown) => void
  readonly onOpen: (row: Row) => void
  readonly onDelete: (ids: readonly string[]) => void
  readonly onAddColumn: () => void
}

/**
 * A table whose cells are edited in place. The focus stays on the table, whose cursor is told to readers by `aria-activedescendant`: rows leave the document while
 * they are scrolled, and would take it along.
 */
export const Grid = (props: GridProps) => {
  const { name, columns, total, rowAt, sort, selected } = props
  const scroller = useRef<HTMLDivElement>(null)
  const [[activeRow, activeColumn], setActive] = useState<readonly [number, number]>([0, 1])
  const [edited, setEdited] = useState<string>()
  const [anchor, setAnchor] = useState<number>()
  const count = Math.min(total, mostRows)
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 6,
    paddingStart: rowHeight,
    scrollPaddingStart: rowHeight * 2,
    scrollPaddingEnd: rowHeight,
  })
  const shown = virtual.getVirtualItems()
  const [first, last] = [shown[0]?.index ?? 0, shown.at(-1)?.index ?? 0]
  useEffect(() => props.onRange(first, last), [first, last])

  const leave = () => {
    setEdited(undefined)
    scroller.current?.focus({ preventScroll: true })
  }
  const showColumn = (at: number) => {
    const head = scroller.current?.querySelector<HTMLElement>(`[data-column="${at}"]`)
    if (!head || !scroller.current) return
    const { offsetLeft, offsetWidth } = head
    const { scrollLeft, clientWidth } = scroller.current
    if (offsetLeft - 76 < scrollLeft) scroller.current.scrollLeft = offsetLeft - 76
    else if (offsetLeft + offsetWidth > scrollLeft + clientWidth)
      scroller.current.scrollLeft = offsetLeft + offsetWidth - clientWidth
  }
  const move = (row: number, column: number) => {
    const next = [Math.max(0, Math.min(count - 1, row)), Math.max(0, Math.min(columns.length, column))] as const
    setActive(next)
    setEdited(undefined)
    virtual.scrollToIndex(next[0])
    showColumn(next[1])
  }
  const change = (index: number, column: CollectionColumn, value: unknown) => {
    const row = rowAt(index)
    if (row && JSON.stringify(row[column.name] ?? null) !== JSON.stringify(value)) props.onChange(row, column, value)
  }
  const edit = (index: number, at: number, text?: string) => {
    const [row, column] = [rowAt(index), columns[at - 1]]
    if (!row || !column) return
    setActive([index, at])
    if (isSystem(column) || isWide(column)) props.onOpen(row)
    else if (column.type === 'boolean') change(index, column, row[column.name] !== true)
    else setEdited(text ?? editedText(column, row[column.name]))
  }
  const select = (index: number, isRange: boolean) => {
    const next = new Set(selected)
    const isOn = !next.has(String(rowAt(index)?.['id']))
    const from = isRange && anchor !== undefined ? Math.min(anchor, index) : index
    const to = isRange && anchor !== undefined ? Math.max(anchor, index) : index
    for (let at = from; at <= to; at += 1) {
      const id = rowAt(at)?.['id']
      if (id === undefined) continue
      if (isOn) next.add(String(id))
      else next.delete(String(id))
    }
    setAnchor(index)
    props.onSelect(next)
  }
  const latest = useRef<Actions>(undefined)
  latest.current = {
    activate: (row, column) => {
      setActive([row, column])
      setEdited(undefined)
    },
    edit,
    commit: (index, at, text, [down, right]) => {
      const column = columns[at - 1]
      leave()
      if (column) {
        try {
          change(index, column, parsed(column, text))
        } catch (error) {
          props.onRefused(error)
          return
        }
      }
      if (down || right) move(index + down, at + right)
    },
    leave,
    open: (index) => {
      const row = rowAt(index)
      if (row) props.onOpen(row)
    },
    select,
  }
  // the same functions in every draw, so that rows that did not change are not drawn again
  const [actions] = useState<Actions>(() => ({
    activate: (...input) => latest.current?.activate(...input),
    edit: (...input) => latest.current?.edit(...input),
    commit: (...input) => latest.current?.commit(...input),
    leave: () => latest.current?.leave(),
    open: (...input) => latest.current?.open(...input),
    select: (...input) => latest.current?.select(...input),
  }))

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== scroller.current) return
    const isMeta = event.ctrlKey || event.metaKey
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 300) / rowHeight) - 2)
    const moves: Readonly<Record<string, () => void>> = {
      ArrowDown: () => move(isMeta ? count - 1 : activeRow + 1, activeColumn),
      ArrowUp: () => move(isMeta ? 0 : activeRow - 1, activeColumn),
      ArrowRight: () => move(activeRow, isMeta ? columns.length : activeColumn + 1),
      ArrowLeft: () => move(activeRow, isMeta ? 0 : activeColumn - 1),
      Home: () => move(isMeta ? 0 : activeRow, 0),
      End: () => move(isMeta ? count - 1 : activeRow, columns.length),
      PageDown: () => move(activeRow + page, activeColumn),
      PageUp: () => move(activeRow - page, activeColumn),
      F2: () => edit(activeRow, activeColumn),
      Enter: () =>
        event.shiftKey
          ? actions.open(activeRow)
          : activeColumn === 0
            ? actions.open(activeRow)
            : edit(activeRow, activeColumn),
      ' ': () => (activeColumn === 0 || event.shiftKey ? select(activeRow, false) : edit(activeRow, activeColumn)),
      Escape: () => props.onSelect(new Set()),
      Delete: () => {
        const column = columns[activeColumn - 1]
        if (selected.size > 0) props.onDelete([...selected])
        else if (column && !isSystem(column) && column.nullable) change(activeRow, column, null)
      },
    }
    const known = moves[event.key]
    const column = columns[activeColumn - 1]
    if (isMeta && event.key === 'c' && column)
      void navigator.clipboard?.writeText(shownText(column, rowAt(activeRow)?.[column.name]))
    else if (known) known()
    else if (event.key.length === 1 && !isMeta && !event.altKey && column && !isSystem(column) && !isWide(column)) {
      // a sign begins a text; a list or a date begins as it is
      const takesText = !column.enum && column.type !== 'date' && column.type !== 'timestamptz'
      if (column.type !== 'boolean') edit(activeRow, activeColumn, takesText ? event.key : undefined)
    } else return
    event.preventDefault()
  }

  const template = `76px ${columns.map((column) => `minmax(${widthOf(column)}px, ${isNumeric(column.type) ? 0.6 : 1}fr)`).join(' ')} 48px`
  const width = 76 + 48 + columns.reduce((sum, column) => sum + widthOf(column), 0)
  const [sortColumn, sortDirection] = (sort ?? '').split('.')
  const isCursorShown = activeRow >= first && activeRow <= last && count > 0
  return (
    <div
      ref={scroller}
      className="grid"
      role="grid"
      tabIndex={0}
      aria-label={name}
      aria-rowcount={total + 1}
      aria-colcount={columns.length + 1}
      aria-multiselectable
      {...(isCursorShown ? { 'aria-activedescendant': 'grid-cursor' } : {})}
      onKeyDown={onKeyDown}
      style={{ '--grid-columns': template, '--grid-width': `${width}px` } as CSSProperties}
    >
      <div className="grid-body" style={{ height: virtual.getTotalSize() }}>
        <div role="row" aria-rowindex={1} className="grid-head">
          <div role="columnheader" className="grid-cell" data-column={0}>
            <span className="only-read">Selected</span>
          </div>
          {columns.map((column, at) => {
            const isSorted = sortColumn === column.name
            const isDown = isSorted && sortDirection === 'desc'
            const sorts = !isWide(column)
            const title = titleOfColumn(column.name)
            return (
              <div
                key={column.name}
                role="columnheader"
                className="grid-cell"
                data-column={at + 1}
                data-number={isNumeric(column.type) || undefined}
                aria-sort={isSorted ? (isDown ? 'descending' : 'ascending') : 'none'}
              >
                {sorts ? (
                  <button
                    type="button"
                    className="grid-sort"
                    title={`${typeWords[column.type]}. Sorts by it`}
                    onClick={() => props.onSort(isDown ? undefined : `${column.name}.${isSorted ? 'desc' : 'asc'}`)}
                  >
                    <span>{title}</span>
                    {!isSystem(column) && <span className="grid-type">{shortTypes[column.type] ?? column.type}</span>}
                    {isSorted && (isDown ? <ArrowDown size={13} aria-hidden /> : <ArrowUp size={13} aria-hidden />)}
                  </button>
                ) : (
                  <span title={typeWords[column.type]}>{title}</span>
                )}
              </div>
            )
          })}
          <div role="columnheader" className="grid-cell" aria-label="New column">
            <Tooltip label="Add column">
              <button type="button" className="grid-sort" aria-label="Add a column" onClick={props.onAddColumn}>
                <Plus size={15} aria-hidden />
              </button>
            </Tooltip>
          </div>
        </div>
        {shown.map(({ index, start }) => {
          const row = rowAt(index)
          const isHere = index === activeRow
          return (
            <Line
              key={index}
              index={index}
              top={start}
              row={row}
              columns={columns}
              active={isHere ? activeColumn : -1}
              edited={isHere ? edited : undefined}
              isSelected={row !== undefined && selected.has(String(row['id']))}
              isStill={!virtual.isScrolling}
              actions={actions}
            />
          )
        })}
      </div>
    </div>
  )
}
