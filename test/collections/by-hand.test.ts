import { expect, test } from 'vitest'
import { define, group, inGroup } from '#test/support/collection_rows.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
const user = await project.user()
const columns = [{ name: 'body', type: 'text' }]

const made = async (name: string, more: object = {}) => {
  const path = await define(project, { name, columns, ...more })
  const writer = more && 'owner_scope' in more ? inGroup(user, await group(project, [[user, 'owner']])) : user
  const row = async (body: string) => (await writer.post(path, { body })).data
  const rows = { held: await row('held'), free: await row('free'), gone: await row('held') }
  await writer.delete(`${path}/${rows.gone.id}`)
  return { path, writer, rows }
}

const writes = (name: string, path: string, { held, free, gone }: any) =>
  [
    ['insert', 'POST', path, { body: 'held' }],
    ['batch', 'POST', `${path}/batch`, { rows: [{ body: 'free' }, { body: 'held' }] }],
    ['patch', 'PATCH', `${path}/${free.id}`, { body: 'held' }],
    ['delete', 'DELETE', `${path}/${held.id}`, undefined],
    ['restore', 'POST', `${path}/${gone.id}/restore`, undefined],
    [
      'transaction',
      'POST',
      '/client/collections/transaction',
      { operations: [{ op: 'insert', collection: name, data: { body: 'held' } }] },
    ],
  ] as const

test('policies that a DBA put beside ours are answered with 403, and nothing is written', async () => {
  const { path, rows } = await made('guarded')
  await project.sql(`create policy "no held" on collections.guarded as restrictive for all to public
    using (true) with check (body <> 'held')`)
  const before = await project.sql('select * from collections.guarded order by id')
  for (const [what, method, to, body] of writes('guarded', path, rows)) {
    expect(await user.request(method, to, body), what).toMatchObject({ status: 403, error: { code: 'FORBIDDEN' } })
  }
  const at = '/collections/guarded/rows'
  for (const [what, method, to, body] of [
    ['insert', 'POST', at, { body: 'held', user_id: user.id }],
    ['batch', 'POST', `${at}/batch`, { rows: [{ body: 'held', user_id: user.id }] }],
    ['patch', 'PATCH', `${at}/${rows.free.id}`, { body: 'held' }],
    ['delete', 'DELETE', `${at}/${rows.held.id}`, undefined],
  ] as const) {
    expect(await project.admin.request(method, to, body), what).toMatchObject({
      status: 403,
      error: { code: 'FORBIDDEN' },
    })
  }
  expect(await project.sql('select * from collections.guarded order by id')).toEqual(before)
  expect((await user.post(path, { body: 'fine' })).status).toBe(201)
  expect((await user.patch(`${path}/${rows.free.id}`, { body: 'fine' })).status).toBe(200)
})

test('policies of a DBA that hide a row from writing are 403 too', async () => {
  const { path, rows } = await made('locked')
  await project.sql(
    `create policy "held stay" on collections.locked as restrictive for update to app_user using (body <> 'held')`,
  )
  for (const answer of [
    await user.patch(`${path}/${rows.held.id}`, { body: 'x' }),
    await user.delete(`${path}/${rows.held.id}`),
    await user.post(`${path}/${rows.gone.id}/restore`),
  ]) {
    expect(answer).toMatchObject({ status: 403, error: { code: 'FORBIDDEN' } })
  }
  expect((await user.get(`${path}/${rows.held.id}`)).data).toEqual(rows.held)
})

test('in a group it is the code of groups', async () => {
  const { path, writer, rows } = await made('of_group', {
    owner_scope: 'group',
    read_policy: 'member',
    write_policy: 'member:member',
  })
  await project.sql(`create policy "no held" on collections.of_group as restrictive for all to app_user
    using (true) with check (body <> 'held')`)
  for (const [what, method, to, body] of writes('of_group', path, rows)) {
    expect(await writer.request(method, to, body), what).toMatchObject({
      status: 403,
      error: { code: 'GROUP_ROLE_FORBIDDEN' },
    })
  }
})

test('a trigger of a DBA refuses in its own words', async () => {
  const { path, rows } = await made('closed')
  await project.sql(`create schema if not exists dba; grant usage on schema dba to public; create function dba.closed() returns trigger language plpgsql as $$
    begin
      if new.body = 'late' then perform internal.fail(409, 'CONFLICT', 'The shop is closed.', '{"field": "body"}'); end if;
      return new;
    end $$;
    create trigger closed before insert or update on collections.closed for each row execute function dba.closed()`)
  for (const answer of [
    await user.post(path, { body: 'late' }),
    await user.patch(`${path}/${rows.free.id}`, { body: 'late' }),
    await user.post(`${path}/batch`, { rows: [{ body: 'early' }, { body: 'late' }] }),
    await user.post('/client/collections/transaction', {
      operations: [{ op: 'insert', collection: 'closed', data: { body: 'late' } }],
    }),
  ]) {
    expect(answer).toMatchObject({
      status: 409,
      error: { code: 'CONFLICT', message: 'The shop is closed.', details: { field: 'body' } },
    })
  }
})

test('a trigger of a DBA that keeps a row from being written without a word is 403, never a request to try again', async () => {
  const { path, rows } = await made('silent', {
    columns: [...columns, { name: 'code', type: 'text', unique: true }],
  })
  const coded = (await user.post(path, { body: 'coded', code: 'a' })).data
  await project.sql(`create schema if not exists dba; grant usage on schema dba to public; create function dba.silent() returns trigger language plpgsql as $$ begin return null; end $$;
    create trigger silent before insert or update or delete on collections.silent for each row execute function dba.silent()`)
  const admin = `/collections/silent/rows`
  const before = await project.sql('select * from collections.silent order by id')
  const refused = [
    ...(await Promise.all(
      writes('silent', path, rows).map(
        async ([what, method, at, body]) => [what, await user.request(method, at, body)] as const,
      ),
    )),
    ['upsert', await user.post(`${path}?on_conflict=update&conflict_target=code`, { code: 'a', body: 'met' })],
    ['patch with a condition', await user.patch(`${path}/${coded.id}`, { body: 'x', $if: { code: 'a' } })],
    ['by an administrator', await project.admin.post(admin, { user_id: user.id, body: 'x' })],
    ['for good', await project.admin.delete(`${admin}/${coded.id}?hard=true`)],
  ] as const
  for (const [what, answer] of refused)
    expect(answer, what).toMatchObject({
      status: 403,
      error: { code: 'FORBIDDEN', message: 'A trigger of the project does not allow this.' },
    })
  expect(await project.sql('select * from collections.silent order by id')).toEqual(before)
  // one of another command is not blamed
  await project.sql(`drop trigger silent on collections.silent;
    create trigger silent before delete on collections.silent for each row execute function dba.silent()`)
  expect((await user.patch(`${path}/${coded.id}`, { body: 'y', $if: { code: 'b' } })).error?.code).toBe('CONFLICT')
  expect((await user.patch(`${path}/${coded.id}`, { body: 'y' })).status).toBe(200)
})
