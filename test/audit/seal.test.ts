import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Project, startHarness } from '#test/support/harness.ts'
import { type OpenTransaction, openTransaction } from '#test/support/transaction.ts'
import { sealControl } from '#workers/seal.ts'

const harness = await startHarness()
const { services } = harness.running
const claimsOf = (project: Project) => ({ 'app.caller': 'developer', 'app.developer_id': project.developer.id })
const integration = (provider: string) =>
  `select api.integration_put('${provider}', 'sealed', 'v1', 'https://example.org')`
const webhook = (project: Project, event_name: string) =>
  project.admin.post('/webhooks', { event_name, target_url: 'https://1.1.1.1/' })
const verify = async (project: Project) => (await project.admin.get('/audit-events/verify')).data
const seal = async (project: Project) => {
  await project.drain()
  await sealControl(services)
}
/** Actions in the order in which they were sealed. */
const sealedActions = async (project: Project) =>
  (
    await project.sql(
      `select e.action || ' ' || coalesce(e.changes -> 'event_name' ->> 1, e.changes -> 'provider' ->> 1, '') as what
         from app.audit_seals s join app.audit_events e on e.id = s.event_id order by s.position`,
    )
  ).map(({ what }) => what)
/** Each row has one seal, and the positions have no gap. */
const expectSealedOnce = async (project: Project) => {
  const [found] = await project.sql(
    `select (select count(*)::int from app.audit_events) as events, count(*)::int as seals, count(distinct event_id)::int as distinct_events,
            max(position)::int as last, (select count(*)::int from app.audit_digests) as waiting
       from app.audit_seals`,
  )
  expect(found).toEqual({
    events: found.events,
    seals: found.events,
    distinct_events: found.events,
    last: found.events,
    waiting: 0,
  })
}

describe('no transaction waits for the chain', () => {
  test('administrators write while another has changes under way; its rows are sealed once they are committed', async () => {
    const project = await harness.project()
    await seal(project)
    const open = await openTransaction(project, 'app_admin', claimsOf(project))
    await open.query(integration('fcm'))
    const answers = await Promise.all(Array.from({ length: 12 }, (_, n) => webhook(project, `beside_${n}`)))
    expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(201))
    // and so is what they wrote, while the first is not done
    await seal(project)
    expect(await verify(project)).toMatchObject({ verified: true, unsealed: 0 })
    const last = (await project.admin.get('/audit-events?limit=1')).data[0]
    expect((await verify(project)).sealed_through_id).toBe(last.id)

    await open.commit()
    const found = await verify(project)
    const listed = (await project.admin.get('/audit-events?limit=20')).data
    const late = listed.findIndex(({ changes }: any) => changes.provider?.[1] === 'fcm')
    // it stands where it occurred, before the others, and is there before it is sealed
    expect(late).toBe(12)
    expect(found).toMatchObject({ verified: true, unsealed: 1, sealed_through_id: listed[late + 1].id })
    await seal(project)
    expect(await verify(project)).toMatchObject({ verified: true, unsealed: 0, sealed_through_id: last.id })
    expect((await sealedActions(project)).at(-1)).toBe('integrations.create fcm')
    await expectSealedOnce(project)
  })

  test('rows of one transaction keep the order in which they were written, in the list and in the chain', async () => {
    const project = await harness.project()
    const open = await openTransaction(project, 'app_admin', claimsOf(project))
    const providers = ['superwall', 'fcm', 'payments', 'apns']
    for (const provider of providers) await open.query(integration(provider))
    await open.commit()
    const page = async () => (await project.admin.get('/audit-events?action=integrations.&limit=50')).data
    const listed = await page()
    expect(listed.map(({ changes }: any) => changes.provider[1])).toEqual([...providers].reverse())
    const { pagination } = (await project.admin.get('/audit-events?action=integrations.&limit=2')).body
    await seal(project)
    expect((await sealedActions(project)).slice(-4)).toEqual(
      providers.map((provider) => `integrations.create ${provider}`),
    )
    // a place in the list is the same before and after
    expect(await page()).toEqual(listed)
    const rest = await project.admin.get(`/audit-events?action=integrations.&cursor=${pagination.next_cursor}`)
    expect(rest.data).toEqual(listed.slice(2))
  })
})

describe('sealers', () => {
  test('eight at once, beside writers, seal each row once', async () => {
    const project = await harness.project()
    const writing = Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        project.sql(`select internal.audit('test.many', 'tests', n::text) from generate_series(1, 200 + $1::int) n`, [
          n,
        ]),
      ),
    )
    for (let round = 0; round < 4; round += 1) await Promise.all(Array.from({ length: 8 }, () => project.drain()))
    await writing
    await Promise.all([project.drain(), project.drain()])
    await expectSealedOnce(project)
    expect(await verify(project)).toMatchObject({ verified: true })
  })

  const sealing = async (project: Project): Promise<OpenTransaction> => {
    const sealer = await openTransaction(project, 'app_worker', { 'app.caller': 'worker' })
    expect(await sealer.query('select internal.audit_seal(5) as sealed')).toEqual([{ sealed: 5 }])
    return sealer
  }
  const step = async (project: Project) =>
    (await project.as('app_worker', {}, `select r.body -> 'data' as step from api.audit_seal(1000) r`))[0].step

  test('one at a time: a second one is refused while the first runs, and writers are not blocked', async () => {
    const project = await harness.project()
    await project.sql(`select internal.audit('test.many', 'tests', n::text) from generate_series(1, 10) n`)
    const sealer = await sealing(project)
    expect(await step(project)).toEqual({ sealed: 0, is_busy: true, is_over: false })
    expect((await webhook(project, 'meanwhile')).status).toBe(201)
    // who finds another at work looks again until nothing waits
    const draining = project.drain()
    await sealer.commit()
    await draining
    await expectSealedOnce(project)
  })

  test('one that is killed midway leaves nothing done, and the next does it', async () => {
    const project = await harness.project()
    await project.sql(`select internal.audit('test.many', 'tests', n::text) from generate_series(1, 10) n`)
    await (await sealing(project)).kill()
    expect(await project.sql('select count(*)::int from app.audit_seals')).toEqual([{ count: 0 }])
    expect(await step(project)).toEqual({ sealed: 10, is_busy: false, is_over: true })
    await expectSealedOnce(project)
    expect(await verify(project)).toMatchObject({ verified: true })
  })
})

/** Control as a project sees it, or the project's own database. */
const places = ['a project', 'control'] as const

describe.each(places)('the seals of %s', (place) => {
  const start = async () => {
    const project = await harness.project()
    const sql: Project['sql'] = place === 'control' ? harness.control : project.sql
    const scope = place === 'control' ? project.id : '00000000-0000-0000-0000-000000000000'
    const write = (from: number, to: number) =>
      sql(
        `select internal.audit('test.seal', 'tests', n::text, scope => $1) from generate_series($2::int, $3::int) n`,
        [scope, from, to],
      )
    const idOf = async (n: number) =>
      (await sql('select id from app.audit_events where target_id = $1 and scope = $2', [String(n), scope]))[0].id
    return { project, sql, scope, write, idOf }
  }

  test('show whatever is done to them, to a digest that waits, or to where a month ends', async () => {
    const { project, sql, scope, write, idOf } = await start()
    await write(1, 10)
    await seal(project)
    await write(11, 12)
    const tables = ['audit_events', 'audit_digests', 'audit_seals', 'audit_heads']
    const copy = randomUUID().slice(0, 8)
    for (const table of tables)
      await sql(`create table app."${table}${copy}" as select * from app.${table} where scope = '${scope}'`)
    const at = (n: number) => `scope = '${scope}' and event_id = '${ids[n]}'`
    const ids: Record<number, string> = {}
    const stranger = randomUUID()
    for (const n of [5, 6, 10, 11, 12]) ids[n] = await idOf(n)
    const [{ last }] = await sql('select max(position)::int as last from app.audit_seals where scope = $1', [scope])
    const attacks: [string, string | null | undefined][] = [
      [`update app.audit_seals set digest = sha256('x') where ${at(5)}`, ids[5]],
      [`update app.audit_seals set hash = sha256('x') where ${at(5)}`, ids[5]],
      [`update app.audit_seals set occurred_at = occurred_at + interval '1 us' where ${at(5)}`, ids[5]],
      [`update app.audit_seals set sealed_at = sealed_at + interval '1 us' where ${at(5)}`, ids[5]],
      [`update app.audit_seals set event_id = '${ids[11]}' where ${at(5)}`, ids[11]],
      [`update app.audit_seals set position = position + 1000 where ${at(5)}`, ids[6]],
      [`delete from app.audit_seals where ${at(5)}`, ids[6]],
      // the row and its seal
      [`delete from app.audit_seals where ${at(5)}; delete from app.audit_events where id = '${ids[5]}'`, ids[6]],
      // the end of the chain, with its rows: nothing is left to be named
      [`delete from app.audit_seals where ${at(10)}; delete from app.audit_events where id = '${ids[10]}'`, null],
      [`delete from app.audit_seals where ${at(10)}`, ids[10]],
      [`update app.audit_heads set last_position = last_position - 1 where scope = '${scope}'`, ids[10]],
      [`update app.audit_heads set last_position = last_position + 1 where scope = '${scope}'`, null],
      [`update app.audit_heads set last_hash = sha256('x') where scope = '${scope}'`, null],
      [`update app.audit_heads set opening_hash = sha256('x') where scope = '${scope}'`, undefined],
      [`delete from app.audit_heads where scope = '${scope}'`, undefined],
      [`update app.audit_digests set digest = sha256('x') where ${at(11)}`, ids[11]],
      [`delete from app.audit_digests where ${at(11)}`, ids[11]],
      [`delete from app.audit_events where id = '${ids[12]}'`, ids[12]],
      [`update app.audit_events set ip = '::1' where id = '${ids[12]}'`, ids[12]],
      [`insert into app.audit_digests values (-1, '${randomUUID()}', '${scope}', now(), sha256('x'))`, undefined],
      // a seal that nobody made, at the end
      [
        `insert into app.audit_seals
         select scope, ${last + 1}, '${stranger}', occurred_at, digest, sealed_at, sha256(hash) from app.audit_seals where ${at(10)}`,
        stranger,
      ],
    ]
    for (const [attack, broken] of attacks) {
      await sql(attack)
      const found = await verify(project)
      expect([attack, found.verified]).toEqual([attack, false])
      if (broken !== undefined) expect([attack, found.first_broken_id]).toEqual([attack, broken])
      for (const table of tables) await sql(`delete from app.${table} where scope = '${scope}'`)
      for (const table of tables) await sql(`insert into app.${table} select * from app."${table}${copy}"`)
      expect(await verify(project)).toMatchObject({ verified: true, first_broken_id: null })
    }
    // what is changed before it is sealed stays changed
    await sql(`update app.audit_events set ip = '::1' where id = '${ids[11]}'`)
    await sql(`delete from app.audit_events where id = '${ids[12]}'`)
    await seal(project)
    expect(await verify(project)).toMatchObject({ verified: false, first_broken_id: ids[11], unsealed: 0 })
    for (const table of tables) await sql(`drop table app."${table}${copy}"`)
  })
})

test('in control each scope has a chain of its own, sealed in one step', async () => {
  await sealControl(services)
  const [one, other] = [randomUUID(), randomUUID()]
  await harness.control(
    `select internal.audit('test.scopes', 'tests', n::text, scope => case n % 2 when 0 then $1::uuid else $2::uuid end) from generate_series(1, 6) n`,
    [one, other],
  )
  expect(await harness.control('select internal.audit_seal(6) as sealed')).toEqual([{ sealed: 6 }])
  const rows = await harness.control(
    `select s.scope, s.position::int, e.target_id from app.audit_seals s join app.audit_events e on e.id = s.event_id
      where s.scope in ($1, $2) order by s.scope = $1 desc, s.position`,
    [one, other],
  )
  const chain = (scope: string, targets: string[]) =>
    targets.map((target_id, n) => ({ scope, position: n + 1, target_id }))
  expect(rows).toEqual([...chain(one, ['2', '4', '6']), ...chain(other, ['1', '3', '5'])])
})
