import type { Row } from '../../api.ts'
import { ago, exactly } from '../../parts/states.tsx'
import type { CollectionColumn } from '../data.ts'
import { UserName } from '../names.tsx'
import { rowTitle, shownText } from '../values.ts'

/** A value of a row as its cell shows it. Names of users are asked for only while the grid stands still. */
export const Cell = ({ column, row, isStill }: { column: CollectionColumn; row: Row; isStill: boolean }) => {
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
