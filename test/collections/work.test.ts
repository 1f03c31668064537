import { afterEach, beforeAll, expect, test } from 'vitest'
import { define } from '#test/support/collection_rows.ts'
import { startHarness } from '#test/support/harness.ts'

// Triggers that a DBA puts on a collection fire when the answer of the statement has been built already.
const harness = await startHarness()
const project = await harness.project()
const user = await project.user()
const { services } = harness.running
const path = await define(project, {
  name: 'orders',
  read_policy: 'public',
  columns: [
    { name: 'n', type: 'integer' },
    { name: 'slug', type: 'text', unique: true },
  ],
})
const plain = await define(project, { name: 'plain', columns: [{ name: 'n', type: 'integer' }] })

/** The jobs that wake this tenant since the last look. */
const woken = async () => {
  await services.waker.flush()
  const jobs = await harness.control<{ key: string }>('select key from graphile_worker.jobs where key like $1', [
    `${project.id}:%`,
  ])
  await harness.control('delete from graphile_worker._private_jobs where key like $1', [`${project.id}:%`])
  return jobs.map(({ key }) => key.slice(project.id.length + 1)).sort()
}
const queued = () => project.sql('select key from app.outbox order by key')
afterEach(() => project.sql('delete from app.outbox'))

beforeAll(async () => {
  await woken()
  await project.sql(`
    create schema dba;
    create function dba.work() returns trigger language plpgsql security definer set search_path = '' as $$
    begin
      perform internal.enqueue('ship', new.n::text, '{}', internal.now() + (new.n - 1) * interval '1 hour');
      return null;
    end $$;
    create trigger work after insert or update on collections.orders for each row when (new.n > 0) execute function dba.work()`)
})

test.each<[string, () => Promise<unknown>]>([
  ['an insert', () => user.post(path, { n: 1 })],
  ['a batch', () => user.post(`${path}/batch`, { rows: [{ n: 1 }, { n: 0 }] })],
  ['an upsert', () => user.post(`${path}?on_conflict=update&conflict_target=slug`, { slug: 's', n: 1 })],
  [
    'a transaction',
    () =>
      user.post('/client/collections/transaction', {
        operations: [{ op: 'insert', collection: 'orders', data: { n: 1 } }],
      }),
  ],
  ['a change', async () => user.patch(`${path}/${(await user.post(path, { n: 0 })).data.id}`, { $inc: { n: 1 } })],
  [
    'a deletion',
    async () => {
      const { id } = (await user.post(path, { n: 0 })).data
      await project.sql('alter table collections.orders disable trigger work')
      await user.patch(`${path}/${id}`, { n: 1 })
      await project.sql('alter table collections.orders enable trigger work')
      return user.delete(`${path}/${id}`)
    },
  ],
])('%s whose trigger queues work wakes its tenant at once', async (_what, write) => {
  expect(await write()).toMatchObject({ error: undefined })
  expect(await queued()).toEqual([{ key: '1' }])
  expect(await woken()).toEqual(['now'])
})

test('the earliest time counts; what is due later has a timer', async () => {
  await user.post(`${path}/batch`, { rows: [{ n: 3 }, { n: 2 }, { n: 4 }] })
  expect(await queued()).toHaveLength(3)
  expect(await woken()).toEqual(['timer'])
  await user.post(`${path}/batch`, { rows: [{ n: 3 }, { n: 1 }, { n: 4 }] })
  expect(await woken()).toEqual(['now'])
})

test('without such a trigger nobody is woken; nor by what was undone, nor by a read', async () => {
  await user.post(plain, { n: 1 })
  await user.post(path, { n: 0 })
  await user.post(`${path}/find`, {})
  expect(await woken()).toEqual([])
  // the first row has queued work when the second is refused
  const refused = await user.post(`${path}/batch`, {
    rows: [
      { n: 1, slug: 'twice' },
      { n: 1, slug: 'twice' },
    ],
  })
  expect(refused.status).toBe(409)
  expect(await queued()).toEqual([])
  expect(await woken()).toEqual([])
  // and the connections are none the wiser
  await Promise.all(Array.from({ length: 20 }, () => user.post(plain, { n: 1 })))
  expect(await woken()).toEqual([])
})

test('sessions that a trigger ends are dropped from the caches at once', async () => {
  const staff = await define(project, { name: 'staff', columns: [{ name: 'n', type: 'integer' }] })
  const fired = await project.user()
  await project.sql(`
    create function dba.fire() returns trigger language plpgsql security definer set search_path = '' as $$
    begin
      update app.user_sessions s set ended_at = internal.now(), end_reason = 'signed_out' where s.app_user_id = new.user_id;
      perform internal.changed('user:' || new.user_id);
      return null;
    end $$;
    create trigger fire after insert on collections.staff for each row execute function dba.fire()`)
  expect((await fired.get(`${staff}/count`)).status).toBe(200)
  expect((await fired.post(staff, { n: 1 })).status).toBe(201)
  expect((await fired.get(`${staff}/count`)).status).toBe(401)
})
