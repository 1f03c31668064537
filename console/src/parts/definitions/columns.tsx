import type { Row } from '../../api.ts'
import type { Column } from '../list.tsx'
import { ProjectLink } from '../page.tsx'
import { When } from '../states.tsx'
import { Status } from '../status.tsx'

/** The first column of definitions: the name as a link, with the key below. */
export const named = (at: string, id: (row: Row) => string = (row) => String(row['id'])): Column<Row> => ({
  title: 'Name',
  show: (row) => (
    <>
      <ProjectLink to={`${at}/${encodeURIComponent(id(row))}`}>{String(row['name'] ?? row['key'])}</ProjectLink>
      {row['name'] !== undefined && row['key'] !== undefined && (
        <span className="cell-sub mono">{String(row['key'])}</span>
      )}
    </>
  ),
})

export const activeColumn: Column<Row> = {
  title: 'Status',
  show: (row) => <Status value={row['is_active'] === false ? 'paused' : 'active'} />,
}

export const changedColumn: Column<Row> = {
  title: 'Changed',
  show: (row) => <When at={(row['updated_at'] ?? row['created_at']) as string} />,
}
