import type { ComponentChildren } from 'preact'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import type { Row } from '../api.ts'
import { texts } from '../texts.ts'

export type Chunk = { readonly rows: readonly Row[]; readonly total: number }

const size = 100
const rowHeight = 36
/** Pages of rows that are kept; those that were seen longest ago are forgotten. */
const mostChunks = 20
const restMs = 60

type Props = {
  readonly label: string
  readonly columns: readonly string[]
  readonly load: (offset: number, limit: number) => Promise<Chunk>
  readonly cells: (row: Row) => readonly ComponentChildren[]
  readonly onError: (error: unknown) => void
}

/**
 * A table of any length of which only what is seen is drawn and asked for: pages that one scrolls past are not. A new `key` is a new list.
 */
export const VirtualTable = ({ label, columns, load, cells, onError }: Props) => {
  const [total, setTotal] = useState<number>()
  const [top, setTop] = useState(0)
  const [height, setHeight] = useState(600)
  const [, setTurn] = useState(0)
  const chunks = useRef(new Map<number, readonly Row[]>())
  const asked = useRef(new Set<number>())
  const scrolled = useRef<HTMLElement>(null)

  const fetchChunk = useCallback(async (number: number) => {
    if (chunks.current.has(number) || asked.current.has(number)) return
    asked.current.add(number)
    try {
      const chunk = await load(number * size, size)
      chunks.current.set(number, chunk.rows)
      const [oldest] = chunks.current.keys()
      if (chunks.current.size > mostChunks && oldest !== undefined) chunks.current.delete(oldest)
      setTotal(chunk.total)
      setTurn((turn) => turn + 1)
    } catch (error) {
      onError(error)
    } finally {
      asked.current.delete(number)
    }
  }, [])

  const first = Math.max(0, Math.floor(top / rowHeight) - 10)
  const last = Math.min(total ?? 0, Math.ceil((top + height) / rowHeight) + 10)
  const [from, to] = [Math.floor(first / size), Math.floor(Math.max(first, last - 1) / size)]
  useEffect(() => {
    const timer = setTimeout(
      () => {
        for (let number = from; number <= to; number += 1) void fetchChunk(number)
      },
      total === undefined ? 0 : restMs,
    )
    return () => clearTimeout(timer)
  }, [from, to, total === undefined])
  useEffect(() => {
    const element = scrolled.current
    if (!element) return
    const measure = new ResizeObserver(() => setHeight(element.clientHeight))
    measure.observe(element)
    return () => measure.disconnect()
  }, [])

  const rowAt = (index: number) => chunks.current.get(Math.floor(index / size))?.[index % size]
  const indexes = Array.from({ length: Math.max(0, last - first) }, (_, n) => first + n)
  return (
    <section
      ref={scrolled}
      class="virtual"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
      tabIndex={0}
      aria-label={label}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      {/* biome-ignore-start lint/a11y/useSemanticElements: a table element lays its rows out itself */}
      {/* biome-ignore-start lint/a11y/useFocusableInteractive: rows are read, links in them are focused */}
      <div role="table" aria-label={label} aria-rowcount={(total ?? 0) + 1}>
        <div role="rowgroup" class="virtual-head">
          <div role="row" class="virtual-row" aria-rowindex={1}>
            {columns.map((column) => (
              <div role="columnheader" key={column}>
                {column}
              </div>
            ))}
          </div>
        </div>
        <div role="rowgroup" class="virtual-body" style={{ height: `${(total ?? 0) * rowHeight}px` }}>
          {indexes.map((index) => {
            const row = rowAt(index)
            return (
              <div
                role="row"
                class="virtual-row"
                key={index}
                aria-rowindex={index + 2}
                style={{ transform: `translateY(${index * rowHeight}px)` }}
              >
                {row ? (
                  cells(row).map((cell, n) => (
                    <div role="cell" key={columns[n]}>
                      {cell}
                    </div>
                  ))
                ) : (
                  <div role="cell">{texts.loading}</div>
                )}
              </div>
            )
          })}
        </div>
      </div>
      {/* biome-ignore-end lint/a11y/useFocusableInteractive: rows are read, links in them are focused */}
      {/* biome-ignore-end lint/a11y/useSemanticElements: a table element lays its rows out itself */}
    </section>
  )
}
