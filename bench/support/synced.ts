// Synced collections of many users and groups, and what clients of sync hold.
import { ask } from '#test/support/process.ts'
import { asAdmin, type Installation, type Scenario } from './installation.ts'

const columns = [
  { name: 'title', type: 'text' },
  { name: 'body', type: 'text' },
  { name: 'rank', type: 'integer' },
  { name: 'done', type: 'boolean' },
  { name: 'tags', type: 'text[]' },
  { name: 'meta', type: 'jsonb' },
  { name: 'due', type: 'timestamptz' },
]
const ofGroups = { owner_scope: 'group', read_policy: 'member', write_policy: 'member:member' }
const collections = [
  { name: 'notes', sync: true },
  { name: 'plain' },
  { name: 'whole', sync: true },
  { name: 'news', sync: true, read_policy: 'public' },
  { name: 'plans', sync: true, ...ofGroups },
]
const groupsOfUser = 20
/** Of one group: with twenty groups each user reads some thousands. */
const rowsOfGroup = 250

const values = `'note ' || n, md5(n::text) || ' ' || md5((n * 7)::text), n % 1000, n % 3 = 0, array['t' || n % 5000, 'u' || n % 7],
  jsonb_build_object('k', n % 5000), t.at + interval '1 day'`
const fields = 'created_at, updated_at, title, body, rank, done, tags, meta, due'
const times = `lateral (select '2026-01-01T00:00:00Z'::timestamptz + n * interval '10 seconds' as at) t`

/** `notes` and `plain` are everybody's own, of which only the first is synced; `plans` is of groups, `news` public, `whole` all of one user. */
export const fillSynced = async (
  { cluster }: Installation,
  scenario: Scenario,
  developer: Readonly<Record<string, string>>,
  { rows, owners, whole }: { readonly rows: number; readonly owners: number; readonly whole: number },
): Promise<void> => {
  for (const each of collections) {
    const path = `/v1/admin/projects/${scenario.projectId}/collections`
    const { status, body } = await ask(scenario.server.url, 'POST', path, { ...each, columns }, developer)
    if (status !== 201) throw new Error(`the collection was not made: ${JSON.stringify(body)}`)
  }
  const run = (text: string) =>
    asAdmin(cluster, scenario.database, `set session_replication_role = replica; set work_mem = '64MB'; ${text}`)
  const groups = Math.ceil(rows / 2 / rowsOfGroup)
  await run(
    `insert into app.users (display_name) select 'owner' from generate_series(1, ${owners - scenario.users.length})`,
  )
  await run(`insert into app.groups (name, is_public, max_members)
             select 'group ' || n, false, 100000 from generate_series(1, ${groups}) n`)
  await run(`insert into app.group_members (group_id, app_user_id)
             select g.ids[1 + (u.n * 7 + k * 13) % ${groups}], u.id
               from (select array_agg(id) as ids from app.groups) g, generate_series(1, ${groupsOfUser}) k,
                    (select id, row_number() over (order by id) as n from app.users) u
             on conflict do nothing`)
  for (const name of ['notes', 'plain'])
    await run(`insert into collections.${name} (user_id, ${fields})
               select u.ids[1 + n % ${owners}], t.at, t.at, ${values}
                 from (select array_agg(id) as ids from app.users) u, generate_series(1, ${rows / 2}) n, ${times}`)
  await run(`insert into collections.plans (group_id, ${fields}) select g.ids[1 + n % ${groups}], t.at, t.at, ${values}
               from (select array_agg(id) as ids from app.groups) g, generate_series(1, ${rows / 2}) n, ${times}`)
  await run(`insert into collections.whole (user_id, ${fields})
             select '${scenario.users[0]?.userId}', t.at, t.at, ${values} from generate_series(1, ${whole}) n, ${times}`)
  for (const { name } of collections) await asAdmin(cluster, scenario.database, `vacuum (analyze) collections.${name}`)
  for (const name of ['users', 'groups', 'group_members'])
    await asAdmin(cluster, scenario.database, `vacuum (analyze) app.${name}`)
}

const tables = ['sync_checkpoints', 'sync_views', 'sync_steps']

/** Bytes of tables and indexes for each of so many clients, 20 of a user with 20 groups, that have pulled. */
export const bytesOfClients = async ({ cluster }: Installation, { database }: Scenario, clients: number) => {
  const run = <T extends Record<string, unknown>>(text: string) => asAdmin<T>(cluster, database, text)
  const size = async () => {
    for (const name of tables) await run(`vacuum full app.${name}`)
    const sum = tables.map((name) => `pg_total_relation_size('app.${name}')`).join(' + ')
    return Number((await run<{ bytes: string }>(`select ${sum} as bytes`))[0]?.bytes)
  }
  const users = clients / 20
  // groups without rows: what is pulled is nothing, and what is kept the same
  await run(`set session_replication_role = replica;
    with u as (insert into app.users (display_name) select 'client' from generate_series(1, ${users}) returning id),
         g as (insert into app.groups (name, is_public) select 'empty', false from generate_series(1, ${groupsOfUser}) returning id)
    insert into app.group_members (group_id, app_user_id) select g.id, u.id from u, g`)
  const before = await size()
  for (const half of [1, 2])
    await run(`do $$
      declare
        ids constant uuid[] := array(select u.id from app.users u where u.display_name = 'client');
        one uuid;
      begin
        delete from app.rate_limits;
        perform set_config('app.caller', 'user', true), set_config('role', 'app_user', true);
        foreach one in array ids loop
          perform set_config('app.user_id', one::text, true);
          for n in 1 .. 10 loop
            perform api.sync_pull(gen_random_uuid(), is_numbered => true);
          end loop;
        end loop;
      end $$; -- ${half}`)
  const [made] = await run<{ n: number }>(
    `select count(*)::int as n from app.sync_checkpoints c join app.users u on u.id = c.app_user_id where u.display_name = 'client'`,
  )
  if (made?.n !== clients) throw new Error(`${made?.n} of ${clients} clients were made`)
  return ((await size()) - before) / clients
}
