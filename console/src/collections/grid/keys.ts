import type { KeyboardEvent } from 'react'
import { type CollectionColumn, isSystem } from '../data.ts'
import { isWide } from '../values.ts'
import type { Actions } from './actions.ts'

type Keyed = {
  readonly cursor: readonly [row: number, column: number]
  readonly columns: readonly CollectionColumn[]
  readonly rows: number
  /** Rows that are seen at once. */
  readonly page: number
  readonly actions: Actions
  readonly move: (row: number, column: number) => void
  readonly copy: (row: number, column: CollectionColumn) => void
  /** Deletes the selected rows, else empties the cell. */
  readonly remove: (row: number, column: CollectionColumn | undefined) => void
  readonly deselect: () => void
}

/** Does what a key of the grid stands for, and answers whether it stood for something. */
export const pressed = (event: KeyboardEvent, grid: Keyed): boolean => {
  const { cursor, columns, rows, page, actions, move } = grid
  const [row, at] = cursor
  const column = columns[at - 1]
  const isMeta = event.ctrlKey || event.metaKey
  const keys: Readonly<Record<string, () => void>> = {
    ArrowDown: () => move(isMeta ? rows - 1 : row + 1, at),
    ArrowUp: () => move(isMeta ? 0 : row - 1, at),
    ArrowRight: () => move(row, isMeta ? columns.length : at + 1),
    ArrowLeft: () => move(row, isMeta ? 0 : at - 1),
    Home: () => move(isMeta ? 0 : row, 0),
    End: () => move(isMeta ? rows - 1 : row, columns.length),
    PageDown: () => move(row + page, at),
    PageUp: () => move(row - page, at),
    F2: () => actions.edit(row, at),
    Enter: () => (event.shiftKey || at === 0 ? actions.open(row) : actions.edit(row, at)),
    ' ': () => (event.shiftKey || at === 0 ? actions.select(row, false) : actions.edit(row, at)),
    Escape: grid.deselect,
    Delete: () => grid.remove(row, column),
  }
  const known = keys[event.key]
  if (isMeta && event.key === 'c' && column) grid.copy(row, column)
  else if (known) known()
  else if (event.key.length === 1 && !isMeta && !event.altKey && column && !isSystem(column) && !isWide(column)) {
    // a sign begins a text; a list or a date begins as it is
    const takesText = !column.enum && column.type !== 'date' && column.type !== 'timestamptz'
    if (column.type !== 'boolean') actions.edit(row, at, takesText ? event.key : undefined)
  } else return false
  return true
}
