import { appendFile, cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { prepareInstallation } from '#fleet/installation.ts'
import { knownOf } from '#fleet/load/checksum.ts'
import { readProgram } from '#fleet/load/files.ts'
import { managedOf } from '#fleet/load/target.ts'
import { logged, type Step, sentenceOf } from '#fleet/progress.ts'
import {
  addCluster,
  fleetStatus,
  listClusters,
  needsMigrating,
  readyTenants,
  reloadInstallation,
  rollOut,
  withoutMigrations,
} from '#fleet/rollout.ts'
import { readTemplate } from '#fleet/templates.ts'
import { connectAdmin } from '#server/database/cluster.ts'
import { templateName } from '#server/database/names.ts'
import { root } from '#server/root.ts'
import { assemble } from '#server/start.ts'
import { type Project, startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const { services } = harness.running
const { cluster } = services.control
const projects: Project[] = []
let base: string

beforeAll(async () => {
  for (let n = 0; n < 3; n += 1) projects.push(await harness.project())
  base = await mkdtemp(join(tmpdir(), 'trellis-rollout-'))
  for (const folder of ['sql', 'functions', 'policies', 'db'])
    await cp(join(root, folder), join(base, folder), { recursive: true })
})
afterAll(() => rm(base, { recursive: true, force: true }))

const programsHere = async () => ({
  control: await readProgram('control', base),
  tenant: await readProgram('tenant', base),
})

/** What npm run db:reload does, with the files of `base`. */
const reload = async () => {
  const programs = await programsHere()
  const { clusterId, upgrade, ...changed } = await reloadInstallation(cluster, harness.prefix, programs)
  const foundation = {
    config: services.config,
    log: services.log,
    secrets: services.secrets,
    postgres: { dsn: cluster.dsn, socketDirectory: cluster.socketDirectory ?? null, stop: async () => undefined },
  }
  const running = await assemble(foundation, {
    programs: { ...programs, tenant: withoutMigrations(programs.tenant) },
    cluster: { ...cluster, id: clusterId },
    upgrade,
  })
  try {
    const tenants = await readyTenants(cluster, harness.prefix, programs.tenant.contentHash)
    return { ...changed, ...(await rollOut(tenants, ({ projectId }) => running.services.fleet.migrate(projectId))) }
  } finally {
    await running.stop()
  }
}

const policies = async (project: Project) =>
  (await project.sql(`select polname from pg_policy where polname = 'for the test'`)).length

test("a reload brings a policy into every project and takes it away again, and leaves a DBA's own alone", async () => {
  const file = join(base, 'policies/tenant/settings.sql')
  const before = await readFile(file, 'utf8')
  await projects[0]?.sql(`create policy "a DBA's own" on app.users for insert to app_dashboard with check (false)`)
  await appendFile(file, `\ncreate policy "for the test" on app.users for select to app_dashboard using (false);\n`)
  expect(await reload()).toEqual({ control: false, template: true, done: 3, failures: [] })
  for (const project of projects) expect(await policies(project)).toBe(1)

  await writeFile(file, before)
  expect(await reload()).toEqual({ control: false, template: true, done: 3, failures: [] })
  for (const project of projects) expect(await policies(project)).toBe(0)
  expect(await projects[0]?.sql(`select from pg_policy where polname = 'a DBA''s own'`)).toHaveLength(1)
  expect(await reload()).toEqual({ control: false, template: false, done: 0, failures: [] })
})

test('projects that nobody changed are brought to the template in one transaction, whichever process built it', async () => {
  const paths = ['functions/tenant/settings.sql', 'policies/tenant/settings.sql']
  for (const path of paths) await appendFile(join(base, path), '\n-- for the test\n')
  // the first has a policy of a DBA's own
  expect(await reload()).toMatchObject({ done: 3, failures: [] })
  const transactions = async (project: Project) => {
    const [found] = await project.sql(
      'select count(distinct xmin::text)::int as n from ops.files where path = any ($1)',
      [paths],
    )
    return found?.['n']
  }
  expect(await Promise.all(projects.map(transactions))).toEqual([2, 1, 1])
  const open = await harness.control(
    `select d.datname from pg_database d where starts_with(d.datname, $1 || '_template') and d.datallowconn`,
    [harness.prefix],
  )
  expect(open).toEqual([])
})

test.each([
  ['a copy of the former one', 'policies/tenant/settings.sql'],
  ['built from nothing', 'sql/tenant/20_events.sql'],
])(
  'what tenants need is read while the template is made, and is what the finished one says: %s',
  async (_how, path) => {
    const untouched = projects[2]!
    await appendFile(join(base, path), '\n-- read meanwhile\n')
    const programs = await programsHere()
    const { upgrade } = await reloadInstallation(cluster, harness.prefix, programs)
    const client = await connectAdmin(cluster, untouched.database)
    try {
      expect((await knownOf(client))?.fingerprint).toBe(upgrade?.former)
      const before = await managedOf(client)
      expect(upgrade?.before.state).toEqual(before.state)
      const read = await readTemplate(
        cluster,
        templateName(harness.prefix),
        programs.tenant,
        upgrade?.former ?? '',
        Promise.resolve(before),
      )
      expect(upgrade?.target).toEqual(read?.upgrade?.target)
    } finally {
      await client.end()
    }
    expect(await reload()).toEqual({ control: false, template: false, done: 3, failures: [] })
  },
)

test('a project that fails is named and holds up no other; once mended it follows', async () => {
  const file = join(base, 'policies/tenant/settings.sql')
  await appendFile(file, '\ngrant select on app.users to app_dashboard;\n')
  const broken = projects[1]!
  await broken.sql('alter table app.users rename to users_elsewhere')
  const first = await reload()
  expect(first).toMatchObject({ done: 3, failures: [{ database: broken.database }] })
  expect(first.failures[0]?.message).toContain('policies/tenant/settings.sql')

  const { tenants, template, control } = await fleetStatus(
    cluster,
    harness.prefix,
    await programsHere(),
    services.secrets,
  )
  expect(tenants).toMatchObject({ tenants: 3, ready: 3, current: 2, behind: 1 })
  expect(tenants.failed).toMatchObject([{ project_id: broken.id, database: broken.database }])
  expect(template?.isCurrent).toBe(true)
  expect(control).toMatchObject({ pending: 0, changed: 0 })

  await broken.sql('alter table app.users_elsewhere rename to users')
  expect(await reload()).toMatchObject({ done: 1, failures: [] })
})

test('a mistake in a file reaches no project', async () => {
  const file = join(base, 'policies/tenant/settings.sql')
  const before = await readFile(file, 'utf8')
  await writeFile(file, `${before}\ngrant nothing;\n`)
  await expect(reload()).rejects.toThrow('policies/tenant/settings.sql')
  await writeFile(file, before)
  expect(await reload()).toMatchObject({ template: false, done: 0 })
})

test('progress names each database, which one of how many it is, and its seconds', async () => {
  const steps: Step[] = []
  const tenants = ['a', 'b', 'c'].map((database) => ({ projectId: database, database, schemaVersion: '' }))
  const migrate = async ({ database }: { database: string }) => {
    if (database === 'b') throw new Error('its disk is full')
  }
  await rollOut(tenants, migrate, { parallel: 1, progress: (step) => steps.push(step) })
  expect(steps).toEqual([
    { database: 'a', action: 'updated', seconds: expect.any(Number), done: 1, of: 3 },
    { database: 'b', action: 'failed', seconds: expect.any(Number), done: 2, of: 3, error: 'its disk is full' },
    { database: 'c', action: 'updated', seconds: expect.any(Number), done: 3, of: 3 },
  ])
  expect(steps.map((step) => sentenceOf({ ...step, seconds: 0.25 }))).toEqual([
    '1 of 3  a updated in 0.3 s',
    '2 of 3  b failed after 0.3 s: its disk is full',
    '3 of 3  c updated in 0.3 s',
  ])
  const lines: unknown[] = []
  const log = { info: (...line: unknown[]) => lines.push(line), warn: (...line: unknown[]) => lines.push(line) }
  logged(log as unknown as Parameters<typeof logged>[0])({ ...steps[0]!, seconds: 0.25 })
  expect(lines).toEqual([
    [{ database: 'a', action: 'updated', seconds: 0.25, done: 1, of: 3 }, '1 of 3  a updated in 0.3 s'],
  ])
})

test('a reload refuses what needs a migration first', async () => {
  const file = join(base, 'db/tenant/migrations/20991231000000_settings.sql')
  await writeFile(file, '-- migrate:up\nselect 1;\n\n-- migrate:down\nselect 1;\n')
  await expect(reload()).rejects.toThrow(needsMigrating('The template').message)
  await rm(file)
})

test('another server gets its roles and its row, with its address sealed', async () => {
  await addCluster(cluster, harness.prefix, services.secrets, { name: 'second', dsn: cluster.dsn, capacity: 7 })
  expect(await listClusters(cluster, harness.prefix)).toMatchObject([
    { name: 'own', tenants: 3 },
    { name: 'second', capacity: 7, tenants: 0, is_open: true },
  ])
  const [row] = await harness.control(`select dsn_sealed from app.clusters where name = 'second'`)
  expect(row.dsn_sealed).not.toContain('postgres')
  expect(services.secrets.decrypt('cluster dsn', row.dsn_sealed)).toBe(cluster.dsn)
  await expect(
    addCluster(cluster, harness.prefix, services.secrets, { name: 'own', dsn: cluster.dsn, capacity: 7 }),
  ).rejects.toThrow('own')
})

test('a server gets no new address where none of its databases is', async () => {
  const add = () =>
    addCluster(cluster, harness.prefix, services.secrets, { name: 'moved', dsn: cluster.dsn, capacity: 7 })
  await add()
  const project = await harness.project()
  const [kept] = await harness.control('select cluster_id, database_name from app.tenants where project_id = $1', [
    project.id,
  ])
  await harness.control(
    `update app.tenants set database_name = 'elsewhere', cluster_id = (select id from app.clusters where name = 'moved') where project_id = $1`,
    [project.id],
  )
  await expect(add()).rejects.toThrow('None of the 1 databases of "moved" is on that server')
  await harness.control('update app.tenants set database_name = $2 where project_id = $1', [
    project.id,
    kept.database_name,
  ])
  await add()
  await harness.control('update app.tenants set cluster_id = $2 where project_id = $1', [project.id, kept.cluster_id])
  await harness.control(`delete from app.clusters where name = 'moved'`)
})

test('a template that was replaced stays until a worker tidies up', async () => {
  const named = `${harness.prefix}_template`
  const databases = async () => {
    const rows = await harness.control<{ datname: string }>(
      "select datname from pg_catalog.pg_database where starts_with(datname, $1) and not datname ~ '_draft$' order by 1",
      [named],
    )
    return rows.map(({ datname }) => datname)
  }
  await services.fleet.tidy()
  expect(await databases()).toEqual([named])
  for (const times of [1, 2]) {
    await appendFile(join(base, 'policies/tenant/settings.sql'), `\n-- again ${times}\n`)
    await reloadInstallation(cluster, harness.prefix, await programsHere())
  }
  expect(await databases()).toEqual([
    named,
    expect.stringMatching(/_template_former_\d+$/),
    expect.stringMatching(/_template_former_\d+$/),
  ])
  await services.fleet.tidy()
  expect(await databases()).toEqual([named])
})

test('a server of an older release that starts, and its workers, leave the databases of a newer one as they are', async () => {
  const { control, tenant } = await programsHere()
  const template = async () => {
    const [row] = await harness.control(
      `select t.content_hash, t.schema_version from app.templates t join app.clusters c on c.id = t.cluster_id and c.name = 'own'`,
    )
    return row
  }
  await harness.control(`update app.templates t set schema_version = '20991231000000', content_hash = 'newer'
                           from app.clusters c where c.id = t.cluster_id and c.name = 'own'`)
  const newer = await template()
  const warnings: unknown[] = []
  const log = { info: () => undefined, warn: (message: unknown) => warnings.push(message) }
  await prepareInstallation(cluster, harness.prefix, { control, tenant }, services.secrets, { log })
  expect(await template()).toEqual(newer)
  expect(warnings).toEqual([expect.stringContaining('newer release')])

  const hashes = () => harness.control('select project_id, content_hash from app.tenants order by 1')
  const before = await hashes()
  expect(await services.fleet.queueMigrations()).toBe(0)
  await expect(services.fleet.migrate(projects[0]!.id)).rejects.toThrow('another program')
  expect(await hashes()).toEqual(before)
})
