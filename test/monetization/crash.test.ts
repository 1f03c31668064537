import { afterAll, expect, inject, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { endHeartbeats, runOperationJob } from '#test/support/jobs.ts'
import { providerProject, readKey, startRevenueCat, writeKey } from '#test/support/monetization.ts'
import { endPrograms, startWorker } from '#test/support/process.ts'
import { monetizationApply } from '#workers/tasks/monetization__apply.ts'

/** A worker that dies between any two calls, of the provider or of a database: another one continues, and the end is the same. */
const provider = await startRevenueCat()
const harness = await startHarness({ env: { REVENUECAT_BASE_URL: provider.url } })
afterAll(async () => {
  await endPrograms()
  await provider.close()
})
const project = await harness.project()
const { services } = harness.running

const config = { secret_api_key: readKey, secret_api_key_write: writeKey, project_id: providerProject }
await project.admin.post('/integrations', { provider: 'revenuecat', config })

const initial = {
  products: [
    { id: 'prod1', app_id: 'app1', store_identifier: 'a', type: 'consumable', display_name: 'A' },
    { id: 'prod2', app_id: 'app1', store_identifier: 'b', type: 'consumable', display_name: 'B' },
  ],
  offerings: [
    {
      id: 'ofrng1',
      lookup_key: 'main',
      display_name: 'Main',
      is_current: true,
      packages: [
        { id: 'pkge1', lookup_key: 'one', display_name: 'one', position: 1, products: ['prod1'] },
        { id: 'pkge2', lookup_key: 'two', display_name: 'two', position: 2, products: ['prod2'] },
      ],
    },
  ],
}
/** Creates, attaches, changes, pushes, detaches and archives. */
const wanted = {
  products: [
    {
      key: 'a',
      store: 'app_store',
      store_identifier: 'a',
      type: 'consumable',
      store_metadata: { push_to_store: false },
    },
    {
      key: 'c',
      store: 'app_store',
      store_identifier: 'c',
      type: 'consumable',
      store_metadata: { push_to_store: true },
    },
  ],
  entitlements: [{ key: 'gold', display_name: 'Gold', product_keys: ['c'] }],
  offerings: [{ key: 'main', display_name: 'All', packages: [{ key: 'one', product_key: 'c', position: 1 }] }],
}
const steps = [
  'create product app_store:c',
  'create entitlement gold',
  'attach entitlement gold/app_store:c',
  'update offering main',
  'create store_product app_store:c',
  'detach package main/one/app_store:a',
  'attach package main/one/app_store:c',
  'archive package main/two',
  'archive product app_store:b',
]

type Tables = { definitions: unknown; applied: unknown }
const save = async (): Promise<Tables> => {
  const [row] = await project.sql<Tables>(`
    select (select jsonb_agg(d) from app.monetization_definitions d) as definitions, (select jsonb_agg(a) from app.monetization_applied_objects a) as applied`)
  return row!
}
const restore = async ({ definitions, applied }: Tables) => {
  await project.sql('delete from app.monetization_definitions')
  await project.sql('delete from app.monetization_applied_objects')
  await project.sql(
    `with written as (insert into app.monetization_definitions select * from jsonb_populate_recordset(null::app.monetization_definitions, $1))
     insert into app.monetization_applied_objects select * from jsonb_populate_recordset(null::app.monetization_applied_objects, $2)`,
    [JSON.stringify(definitions), JSON.stringify(applied)],
  )
}

const prepare = async (): Promise<Tables> => {
  provider.reset(initial)
  await project.sql('delete from app.monetization_definitions')
  await project.sql('delete from app.monetization_applied_objects')
  await project.admin.post('/monetization/adopt', { adopt_all: true })
  await project.admin.put('/monetization/definitions', { monetization: wanted })
  return save()
}

/**
 * Services of a worker that dies after its n-th call that matters, whose effect is there and whose answer is lost, and does nothing any more. To die
 * before the next call is the same for everybody outside.
 */
const dyingAt = (n: number) => {
  let moments = 0
  let isDead = false
  const moment = () => {
    if (moments === n) isDead = true
    moments += 1
    if (isDead) throw new Error('killed')
  }
  const watched =
    <A extends unknown[], R>(call: (...args: A) => Promise<R>, matters: (...args: A) => boolean) =>
    async (...args: A): Promise<R> => {
      if (isDead) throw new Error('killed')
      const result = await call(...args)
      if (matters(...args)) moment()
      return result
    }
  const { upstream, database } = services
  const dying = {
    ...services,
    upstream: { ...upstream, call: watched(upstream.call, ({ method }) => method !== 'GET') },
    database: { ...database, call: watched(database.call, () => true) },
  }
  return { dying, isDead: () => isDead }
}

const start = async () => {
  const { plan_hash } = (await project.admin.get('/monetization/plan')).data
  const { data } = await project.admin.post('/monetization/apply', { plan_hash })
  return { operationId: data.operation_id as string, plan_hash }
}
const confirm = async (plan_hash: string) => {
  const { data } = await project.admin.post('/monetization/apply', { plan_hash, confirm: plan_hash })
  expect(data.status).toBe('confirm_sent')
}
const run = (operationId: string) => runOperationJob(harness, project, 'monetization__apply', operationId)

/** The whole life of an apply, of which one run dies; whether that moment was reached. */
const live = async (tables: Tables, n: number, dies: 'first' | 'second'): Promise<boolean> => {
  provider.reset(initial)
  await harness.control('delete from app.operations')
  await restore(tables)
  const { operationId, plan_hash } = await start()
  const { dying, isDead } = dyingAt(n)
  const die = () => monetizationApply.run(dying, { operation_id: operationId }).catch((error: Error) => error)
  if (dies === 'first') await die()
  expect(await run(operationId)).toMatchObject({ status: 'waiting', progress: { done: 4, total: 9 } })
  await confirm(plan_hash)
  if (dies === 'second') await die()
  const ended = await run(operationId)
  expect(ended).toMatchObject({ status: 'succeeded', progress: { done: 9, total: 9 }, failed_reason: null })
  expect(ended.result.applied.map((step: any) => `${step.op} ${step.object_type} ${step.identifier}`)).toEqual(steps)
  return isDead()
}

test.each(['first', 'second'] as const)(
  'at any moment of the %s run: the end is as without it, and nothing is created twice',
  async (dies) => {
    const tables = await prepare()
    const whole = await live(tables, -1, dies)
    expect(whole).toBe(false)
    const shown = provider.shown()
    expect(provider.created).toEqual(['product c', 'entitlement gold', 'store_product c'])
    expect(shown.offerings[0]).toMatchObject({
      display_name: 'All',
      packages: [{ lookup_key: 'one', products: ['c'] }],
    })
    let n = 0
    while (await live(tables, n, dies)) {
      expect(provider.shown(), `killed at ${n}`).toEqual(shown)
      expect(provider.created, `killed at ${n}`).toEqual(['product c', 'entitlement gold', 'store_product c'])
      const plan = (await project.admin.get('/monetization/plan')).data
      expect([plan.ops, plan.drift], `killed at ${n}`).toEqual([[], []])
      n += 1
    }
    // each of four or five steps has its two records and its call
    expect(n).toBeGreaterThan(4 * 3)
    expect(provider.violations).toEqual([])
  },
  600_000,
)

/** A worker process that is killed when the provider has performed a request and the answer is on its way. */
const killAt = async (path: RegExp) => {
  const performed = Promise.withResolvers<void>()
  provider.interfere((call) => {
    if (call.method !== 'POST' || !path.test(call.path)) return null
    performed.resolve()
    return { when: 'after', reply: 'silence' }
  })
  const { child, ended } = await worker()
  await performed.promise
  child.kill('SIGKILL')
  expect(await ended).toBe('SIGKILL')
  provider.interfere(() => null)
  await endHeartbeats(harness)
}
const worker = () =>
  startWorker({
    DATABASE_URL: inject('dsn'),
    DATABASE_PREFIX: harness.prefix,
    SECRETS_KEY: inject('secretsKey'),
    DATA_DIR: services.config.DATA_DIR,
    REVENUECAT_BASE_URL: provider.url,
  })

test('a process that is killed in the middle of an apply: the next one takes the job over and ends it', async () => {
  await prepare()
  await harness.control('delete from app.operations')
  const { operationId, plan_hash } = await start()
  const operation = async () => (await project.admin.get(`/operations/${operationId}`)).data
  const until = (status: string) =>
    expect.poll(async () => (await operation()).status, { timeout: 60_000 }).toBe(status)
  await killAt(/\/products$/)
  expect(await operation()).toMatchObject({ status: 'running', progress: { done: 0 } })
  const { child, ended } = await worker()
  await until('waiting')
  child.kill('SIGTERM')
  expect(await ended).toBe(0)
  await confirm(plan_hash)
  await killAt(/\/create_in_store$/)
  await worker()
  await until('succeeded')
  const { progress, failed_reason, result } = await operation()
  expect([progress, failed_reason]).toEqual([{ done: 9, total: 9 }, null])
  expect(result.applied.map((step: any) => `${step.op} ${step.object_type} ${step.identifier}`)).toEqual(steps)
  expect(provider.created).toEqual(['product c', 'entitlement gold', 'store_product c'])
  expect(provider.violations).toEqual([])
  const plan = (await project.admin.get('/monetization/plan')).data
  expect([plan.ops, plan.drift]).toEqual([[], []])
}, 300_000)
