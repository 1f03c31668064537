// biome-ignore-all lint/a11y/useSemanticElements: rows leave the document while they are scrolled, as those of a table element cannot
import { useVirtualizer } from '@tanstack/react-virtual'
import { type CSSProperties, type KeyboardEvent, useEffect, useRef, useState } from 'react'
import type { Row } from '../../api.ts'
import { type CollectionColumn, isNumeric, isSystem } from '../data.ts'
import { mostRows } from '../use_rows.ts'
import { editedText, isWide, parsed, shownText, widthOf } from '../values.ts'
import { useSteady } from './actions.ts'
import { Head } from './head.tsx'
import { pressed } from './keys.ts'
import { Line } from './line.tsx'

const rowHeight = 34

type GridProps = {
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
  const actions = useSteady({
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
  })
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== scroller.current) return
    const isKnown = pressed(event, {
      cursor: [activeRow, activeColumn],
      columns,
      rows: count,
      page: Math.max(1, Math.floor((scroller.current?.clientHeight ?? 300) / rowHeight) - 2),
      actions,
      move,
      copy: (row, column) => {
        void navigator.clipboard?.writeText(shownText(column, rowAt(row)?.[column.name]))
      },
      remove: (row, column) => {
        if (selected.size > 0) props.onDelete([...selected])
        else if (column && !isSystem(column) && column.nullable) change(row, column, null)
      },
      deselect: () => props.onSelect(new Set()),
    })
    if (isKnown) event.preventDefault()
  }

  const template = `76px ${columns.map((column) => `minmax(${widthOf(column)}px, ${isNumeric(column.type) ? 0.6 : 1}fr)`).join(' ')} 48px`
  const width = 76 + 48 + columns.reduce((sum, column) => sum + widthOf(column), 0)
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
        <Head columns={columns} sort={sort} onSort={props.onSort} onAddColumn={props.onAddColumn} />
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
