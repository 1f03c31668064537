import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '#fleet/embedded/server.ts'
import { root } from '#server/root.ts'
import {
  ask,
  createTestProject,
  endPrograms,
  endServer,
  type ServerProcess,
  startServer,
  temporaryFolder,
} from '#test/support/process.ts'

// A server with the roles of Supabase's Postgres, on which everything from the first role to a user's event is done by its role postgres.
let postgres: EmbeddedPostgres
let server: ServerProcess
let project: Awaited<ReturnType<typeof createTestProject>>
let before: unknown

const as = (user: string | null, database = 'postgres') => {
  const url = new URL(postgres.url)
  url.pathname = database
  if (user) Object.assign(url, { username: user, password: 'supabase' })
  return url.href
}

const query = async (dsn: string, text: string, values: unknown[] = []): Promise<any[]> => {
  const client = new pg.Client(dsn)
  await client.connect()
  return client
    .query(text, values)
    .then(({ rows }) => rows)
    .finally(() => client.end())
}

/** What the project is to Supabase: its roles with their settings and memberships, and its database. */
const supabase = async () => ({
  roles: await query(
    as(null),
    `select r.*, array(select m.roleid::regrole::text || m.admin_option from pg_auth_members m where m.member = r.oid
                        and m.roleid::regrole::text !~ '^(login_|app_|control_|trellis_)' order by 1) as memberships
       from pg_roles r where r.rolname !~ '^(login_|app_|control_|trellis_)' order by r.rolname`,
  ),
  schemas: await query(
    as(null),
    `select nspname, nspowner::regrole::text, nspacl::text from pg_namespace where nspname !~ '^pg_' order by 1`,
  ),
  tables: await query(as(null), `select oid::regclass::text from pg_class where relnamespace >= 16384 order by 1`),
  extensions: await query(as(null), 'select extname from pg_extension order by 1'),
})

const start = () =>
  startServer({ DATABASE_URL: as('postgres'), SECRETS_KEY: Buffer.alloc(32, 5).toString('base64'), LOG_LEVEL: 'error' })

beforeAll(async () => {
  postgres = await startEmbeddedPostgres({
    dataDir: await temporaryFolder(),
    superuserPassword: 'supabase',
    sync: false,
    log: () => undefined,
    maxConnections: 200,
  })
  await query(as(null), await readFile(join(root, 'test/fixtures/supabase.sql'), 'utf8'))
  before = await supabase()
  server = await start()
  project = await createTestProject(server.url)
}, 180_000)
afterAll(async () => {
  await endPrograms()
  await postgres?.stop()
})

const database = () => `trellis_${project.projectId.replaceAll('-', '')}`

test('the role that makes everything may no more than that of Supabase', async () => {
  const [role] = await query(
    as('postgres'),
    'select rolsuper, rolcreatedb, rolcreaterole, rolbypassrls, rolreplication from pg_roles where rolname = current_user',
  )
  expect(role).toEqual({
    rolsuper: false,
    rolcreatedb: true,
    rolcreaterole: true,
    rolbypassrls: true,
    rolreplication: true,
  })
})

test('users sign in, post events and see their own data alone', async () => {
  const event = await ask(server.url, 'POST', '/v1/client/events', { event_name: 'opened' }, project.user)
  expect(event.status).toBe(201)
  const other = await ask(server.url, 'POST', '/v1/client/auth/anonymous', {}, project.key)
  const me = await ask(server.url, 'GET', '/v1/client/users/me', undefined, {
    ...project.key,
    authorization: `Bearer ${other.body.data.session_token}`,
  })
  expect(me.body.data.id).toBe(other.body.data.user.id)
  const path = `/v1/admin/projects/${project.projectId}/users`
  const listed = await ask(server.url, 'GET', path, undefined, project.developer)
  expect(listed.body.total).toBe(2)
  const strong = await query(
    as(null),
    `select rolname from pg_roles
      where rolname ~ '^(login_|app_|control_|trellis_)' and rolname <> 'trellis_superuser'
        and (rolsuper or rolbypassrls or rolcreaterole or rolcreatedb or rolreplication)`,
  )
  expect(strong).toEqual([])
})

test('collections get tables of their own', async () => {
  const admin = `/v1/admin/projects/${project.projectId}/collections`
  const made = await ask(
    server.url,
    'POST',
    admin,
    {
      name: 'notes',
      columns: [
        { name: 'title', type: 'text' },
        { name: 'place', type: 'vector', dimensions: 3 },
      ],
      access: { read: 'public', write: 'owner' },
    },
    project.developer,
  )
  expect(made.status, JSON.stringify(made.body)).toBe(201)
})

test('the logins of Supabase reach no database of ours, and its roles have nothing in them', async () => {
  for (const name of ['trellis_control', database()]) {
    for (const login of ['authenticator', 'pgbouncer', 'supabase_auth_admin', 'supabase_storage_admin']) {
      await expect(query(as(login, name), 'select 1'), `${login} in ${name}`).rejects.toMatchObject({ code: '42501' })
    }
    const [held] = await query(
      as(null, name),
      `select count(*)::int as relations
         from pg_class c, unnest(array['anon', 'authenticated', 'service_role']) r
        where c.relnamespace::regnamespace::text in ('app', 'internal', 'collections') and c.relkind in ('r', 'p', 'v')
          and has_table_privilege(r, c.oid, 'select, insert, update, delete')`,
    )
    expect(held).toEqual({ relations: 0 })
  }
})

test('a second start changes nothing, a project is deleted with its database, and Supabase is as it was', async () => {
  await endServer(server)
  server = await start()
  expect(server.output()).toContain('Trellis is running')
  const path = `/v1/admin/projects/${project.projectId}`
  expect((await ask(server.url, 'GET', path, undefined, project.developer)).status).toBe(200)
  expect((await ask(server.url, 'DELETE', path, undefined, project.developer)).status).toBeLessThan(300)
  const isThere = async () =>
    (await query(as(null), 'select from pg_database where datname = $1', [database()])).length > 0
  await expect.poll(isThere, { timeout: 60_000, interval: 100 }).toBe(false)
  expect(await supabase()).toEqual(before)
}, 120_000)
