// biome-ignore-all lint/a11y/useSemanticElements: rows leave the document while they are scrolled, as those of a table element cannot
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid has the focus, and names its cell by aria-activedescendant
// biome-ignore-all lint/a11y/useKeyWithClickEvents: the keys are those of the grid
import { Maximize2 } from 'lucide-react'
import { memo } from 'react'
import type { Row } from '../../api.ts'
import { type CollectionColumn, isNumeric, isSystem } from '../data.ts'
import type { Actions } from './actions.ts'
import { Cell } from './cell.tsx'
import { CellEditor } from './cell_editor.tsx'

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

/** A row of the grid: the box that selects it, the button that opens it, and its cells. */
export const Line = memo(({ index, top, row, columns, active, edited, isSelected, isStill, actions }: LineProps) => (
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
            <CellEditor
              column={column}
              text={edited}
              onCommit={(text, by) => actions.commit(index, at + 1, text, by)}
              onLeave={actions.leave}
            />
          ) : row ? (
            <Cell column={column} row={row} isStill={isStill} />
          ) : (
            <span className="grid-wait" />
          )}
        </div>
      )
    })}
  </div>
))
