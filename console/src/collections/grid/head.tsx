// biome-ignore-all lint/a11y/useSemanticElements: rows leave the document while they are scrolled, as those of a table element cannot
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid has the focus, and names its cell by aria-activedescendant
import { Tooltip } from '@mantine/core'
import { ArrowDown, ArrowUp, Plus } from 'lucide-react'
import { type CollectionColumn, isNumeric, isSystem, titleOfColumn, typeWords } from '../data.ts'
import { isWide } from '../values.ts'

const shortTypes: Partial<Record<CollectionColumn['type'], string>> = {
  integer: '123',
  bigint: '123',
  numeric: '1.5',
  double: '1.5',
  boolean: 'yes/no',
  timestamptz: 'time',
}

type HeadProps = {
  readonly columns: readonly CollectionColumn[]
  /** `<column>.asc` or `<column>.desc` */
  readonly sort: string | undefined
  readonly onSort: (sort: string | undefined) => void
  readonly onAddColumn: () => void
}

/** The heads of the columns: a press sorts upwards, the next one downwards, a third one as the rows came. */
export const Head = ({ columns, sort, onSort, onAddColumn }: HeadProps) => {
  const [sortColumn, sortDirection] = (sort ?? '').split('.')
  return (
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
                onClick={() => onSort(isDown ? undefined : `${column.name}.${isSorted ? 'desc' : 'asc'}`)}
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
          <button type="button" className="grid-sort" aria-label="Add a column" onClick={onAddColumn}>
            <Plus size={15} aria-hidden />
          </button>
        </Tooltip>
      </div>
    </div>
  )
}
