import { call, type Row } from '../api.ts'
import { Refusal } from '../form.tsx'
import type { PageProps } from '../page_props.ts'
import { timeOf } from '../parts/field.tsx'
import { usePolled } from '../parts/polled.ts'
import { Table } from '../parts/table.tsx'
import { texts } from '../texts.ts'

type Entry = {
  readonly app_user_id: string
  readonly score: number | string
  readonly rank: number | null
  readonly reached_at: string
  readonly user: Row | null
}

/** The first of a leaderboard, looked at again every three seconds. */
export const LeaderboardLive = ({ projectId, id }: PageProps) => {
  const load = () =>
    call('GET /v1/admin/projects/{projectId}/leaderboards/{idOrKey}/entries', {
      path: { projectId, idOrKey: id },
      query: { limit: 50 },
    })
  const { value, error } = usePolled(`entries ${id}`, load, 3)
  const rows = (value?.data ?? []) as readonly Entry[]
  return (
    <>
      <h1>{texts.leaderboardLive}</h1>
      <Refusal error={error} />
      {!value && !error && <p role="status">{texts.loading}</p>}
      {value && rows.length === 0 && <p>{texts.nothing}</p>}
      {rows.length > 0 && (
        <Table label={texts.leaderboardLive} columns={texts.entryColumns}>
          {rows.map((entry) => (
            <tr key={entry.app_user_id}>
              <td>{entry.rank}</td>
              <td>
                <a href={`/console/projects/${projectId}/user/timeline?item=${entry.app_user_id}`}>
                  {String(entry.user?.['display_name'] ?? entry.app_user_id)}
                </a>
              </td>
              <td>{String(entry.score)}</td>
              <td>{timeOf(entry.reached_at)}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  )
}
