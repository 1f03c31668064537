import { type KeyboardEvent, useRef } from 'react'
import { type CollectionColumn, isNumeric } from '../data.ts'

/** The control in place of a cell that is edited. Enter, Tab and leaving it end the edit, Escape drops it. */
export const CellEditor = ({
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
