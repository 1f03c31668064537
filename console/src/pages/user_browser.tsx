import { useState } from 'preact/hooks'
import { call, type Row } from '../api.ts'
import { Refusal } from '../form.tsx'
import type { PageProps } from '../page_props.ts'
import { TextField, timeOf } from '../parts/field.tsx'
import { VirtualTable } from '../parts/virtual.tsx'
import { texts } from '../texts.ts'

/** All users in one list that scrolls, however many they are. */
export const UserBrowser = ({ projectId }: PageProps) => {
  const [search, setSearch] = useState('')
  const [asked, setAsked] = useState('')
  const [total, setTotal] = useState<number>()
  const [failure, setFailure] = useState<unknown>()
  const load = async (offset: number, limit: number) => {
    const query = { limit, offset, ...(asked ? { search: asked } : {}) }
    const reply = await call('GET /v1/admin/projects/{projectId}/users', { path: { projectId }, query })
    setTotal(reply.total)
    return { rows: reply.data as readonly Row[], total: reply.total ?? 0 }
  }
  const apply = (event: Event) => {
    event.preventDefault()
    setFailure(undefined)
    setTotal(undefined)
    setAsked(search)
  }
  return (
    <>
      <h1>{texts.users}</h1>
      <form class="row" onSubmit={apply} aria-label={texts.filters}>
        <TextField label={texts.search} type="search" value={search} onValue={setSearch} />
        <button type="submit">{texts.apply}</button>
      </form>
      <Refusal error={failure} />
      <p role="status">{total === undefined ? (failure ? '' : texts.loading) : texts.usersFound(total)}</p>
      <VirtualTable
        key={asked}
        label={texts.users}
        columns={texts.userColumns}
        load={load}
        onError={setFailure}
        cells={(row) => [
          <a key="name" href={`/console/projects/${projectId}/user/timeline?item=${String(row['id'])}`}>
            {String(row['display_name'] ?? row['id'])}
          </a>,
          String(row['email'] ?? ''),
          timeOf(row['created_at']),
          timeOf(row['last_seen_at']),
        ]}
      />
    </>
  )
}
