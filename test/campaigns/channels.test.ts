// A channel that is registered by one file: the machine of campaigns plans, skips, caps and sends for it, and knows none by name.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { root } from '#server/root.ts'
import { type Project, startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
afterEach(() => harness.setTime(null))
const pigeon = await readFile(join(root, 'test/campaigns/pigeon.sql'), 'utf8')

/** A project with the channel, at half past twelve in UTC. */
const withPigeons = async (): Promise<Project> => {
  harness.setTime('2026-12-05T12:30:00Z')
  const project = await harness.project()
  await project.sql(pigeon)
  return project
}

const callAs = async (
  project: Project,
  role: 'app_admin' | 'app_worker',
  name: string,
  args: Record<string, unknown>,
) => {
  const claims = {
    'app.caller': role === 'app_admin' ? 'developer' : 'worker',
    'app.clock': harness.now().toISOString(),
  }
  const names = Object.keys(args)
  const text = `select r.status, r.body from api.${name}(${names.map((key, n) => `${key} => $${n + 1}`).join(', ')}) r`
  const [reply] = await project.as(role, claims, text, Object.values(args))
  return { status: reply.status, data: reply.body.data }
}
const admin = (project: Project, name: string, args: Record<string, unknown>) =>
  callAs(project, 'app_admin', name, { channel: 'pigeon', ...args })

const make = async (project: Project, fields: object = {}) => {
  const patch = JSON.stringify({ name: 'News', text: 'Hello', audience: { all: true }, ...fields })
  const made = await admin(project, 'campaign_create', { patch, is_production: true })
  expect([201, 202]).toContain(made.status)
  return made.data.id as string
}

/** Users with these properties, in UTC; answers their ids. */
const lofts = async (project: Project, properties: readonly object[], timezone = 'UTC'): Promise<string[]> =>
  (
    await project.sql(
      `insert into app.users (display_name, properties, timezone)
       select 'user ' || e.n, e.value, $2 from jsonb_array_elements($1) with ordinality e (value, n) order by e.n returning id`,
      [JSON.stringify(properties), timezone],
    )
  ).map(({ id }) => id as string)

const outcomes = async (project: Project, id: string) =>
  Object.fromEntries(
    (
      await project.sql(
        `select concat_ws(' ', d.status, d.reason, d.code) as outcome, count(*)::int as n from app.campaign_deliveries d where d.campaign_id = $1 group by 1`,
        [id],
      )
    ).map(({ outcome, n }) => [outcome, n]),
  )
const shown = async (project: Project, id: string) => (await admin(project, 'campaign_get', { campaign_id: id })).data

describe('a made-up channel', () => {
  test('sends a campaign to whom it reaches, and skips the others for their reasons', async () => {
    const on = await withPigeons()
    const [near] = await lofts(on, [
      { loft: 'near' },
      {},
      { loft: 'near', no_news: true },
      { loft: 'near', asleep: { start: '12:00', end: '13:00' } },
      { loft: 'closed' },
    ])
    await lofts(on, [{ loft: 'near' }], 'Asia/Tokyo')
    const quiet_hours = { start: '21:00', end: '22:00' }
    const id = await make(on, { kind: 'news', quiet_hours })
    const preview = await admin(on, 'campaign_preview', { campaign_id: id, user_id: near })
    expect(preview.data).toEqual({
      audience_count: 6,
      by_locale: { default: 6 },
      skipped: { no_loft: 1, opted_out: 1, quiet: 2, capped: 0 },
      rendered: { text: 'Hello', to: 'near' },
    })
    expect((await admin(on, 'campaign_schedule', { campaign_id: id, is_production: true })).status).toBe(202)
    await on.drain()
    expect(await outcomes(on, id)).toEqual({
      sent: 1,
      'skipped no_loft': 1,
      'skipped opted_out': 1,
      'skipped quiet_hours': 2,
      'failed LOFT_CLOSED': 1,
    })
    expect(await on.sql('select app_user_id, text from app.test_letters')).toEqual([
      { app_user_id: near, text: 'Hello' },
    ])
    const campaign = await shown(on, id)
    expect(campaign).toMatchObject({ status: 'sent', text: 'Hello', kind: 'news', variants: [] })
    expect(campaign.counts).toEqual({ targeted: 6, sent: 1, failed: 1, skipped: 4, opened: 0, converted: 0 })
    const stats = await admin(on, 'campaign_stats', { campaign_id: id })
    expect(stats.data).toMatchObject({ targeted: 6, open_rate: 0, hours: [{ sent: 1, failed: 1, skipped: 4 }] })
    const list = await admin(on, 'campaign_deliveries', { campaign_id: id, status: 'failed' })
    expect(list.data).toMatchObject([{ campaign_id: id, status: 'failed', code: 'LOFT_CLOSED' }])
  })

  test('is capped by what it has sent itself, whatever other channels have sent', async () => {
    const on = await withPigeons()
    const [user] = await lofts(on, [{ loft: 'near' }])
    const sent = (channel: string) =>
      on.sql(
        `insert into app.campaign_deliveries (queue_id, channel, app_user_id, status, sent_at, due_at) values (gen_random_uuid(), $1, $2, 'sent', $3, $3)`,
        [channel, user, harness.now()],
      )
    await sent('push')
    await sent('email')
    const frequency_cap = { max: 1, hours: 24 }
    const ids = [await make(on, { frequency_cap, send_now: true }), await make(on, { frequency_cap, send_now: true })]
    await on.drain()
    expect(await Promise.all(ids.map((id) => outcomes(on, id)))).toEqual(
      expect.arrayContaining([{ sent: 1 }, { 'skipped capped': 1 }]),
    )
    const third = await make(on, { frequency_cap })
    expect((await admin(on, 'campaign_preview', { campaign_id: third })).data.skipped).toMatchObject({ capped: 1 })
    harness.setTime('2026-12-06T12:31:00Z')
    await admin(on, 'campaign_schedule', { campaign_id: third, is_production: true })
    await on.drain()
    expect(await outcomes(on, third)).toEqual({ sent: 1 })
  })

  test('writes outcomes later where it says so, and no more wait for one than it allows', async () => {
    const on = await withPigeons()
    await lofts(
      on,
      Array.from({ length: 8 }, () => ({ loft: 'far' })),
    )
    const id = await make(on, { send_now: true })
    await on.drain()
    expect(await outcomes(on, id)).toEqual({ pending: 3, sending: 5 })
    const arrive = () =>
      on.sql(
        `select internal.campaign_delivery_ended(d.id, 'sent', null, internal.now()) from app.campaign_deliveries d where d.status = 'sending'`,
      )
    await arrive()
    harness.setTime('2026-12-05T12:31:00Z')
    await on.drain()
    expect(await outcomes(on, id)).toEqual({ sent: 5, sending: 3 })
    expect((await shown(on, id)).status).toBe('sending')
    await arrive()
    await on.drain()
    expect(await shown(on, id)).toMatchObject({ status: 'sent', counts: { targeted: 8, sent: 8 } })
    expect(await on.sql('select count(*)::int as n from app.test_letters')).toEqual([{ n: 8 }])
  })

  test('has variants, throttles, a rate of its own, tests, copies and states without saying so', async () => {
    const on = await withPigeons()
    const users = await lofts(
      on,
      Array.from({ length: 40 }, () => ({ loft: 'near' })),
    )
    const variants = [{ key: 'b', weight: 50, message: { text: 'Goodbye' } }]
    const id = await make(on, { variants })
    const tested = await admin(on, 'campaign_test', {
      campaign_id: id,
      user_ids: JSON.stringify(users.slice(0, 2)),
      is_production: true,
    })
    expect(tested).toMatchObject({ status: 202, data: { delivery_ids: [expect.any(String), expect.any(String)] } })
    expect(await on.sql(`select is_test, status, tries from app.campaign_deliveries`)).toEqual([
      { is_test: true, status: 'sent', tries: 1 },
      { is_test: true, status: 'sent', tries: 1 },
    ])
    const copy = await admin(on, 'campaign_duplicate', { campaign_id: id })
    expect(copy.data).toMatchObject({ name: 'Copy of News', text: 'Hello', variants, status: 'draft' })

    await on.sql(`select internal.set_setting('pigeon.sends_per_second', '4')`)
    await admin(on, 'campaign_schedule', { campaign_id: id, is_production: true })
    await callAs(on, 'app_worker', 'campaign_plan_step', { campaign_id: id })
    const claim = async () =>
      (await callAs(on, 'app_worker', 'campaign_claim', { queue: id, most: 500, is_production: true })).data
    const first = await claim()
    expect(first).toMatchObject({ deliveries: [], picked: 4 })
    expect(await claim()).toMatchObject({ picked: 0 })
    const paused = await admin(on, 'campaign_move', { campaign_id: id, verb: 'pause' })
    expect(paused.data.status).toBe('paused')
    harness.setTime('2026-12-05T12:30:10Z')
    expect(await claim()).toEqual({ deliveries: [], picked: 0, next_at: null })
    await admin(on, 'campaign_move', { campaign_id: id, verb: 'cancel' })
    await on.drain()
    const { counts } = await shown(on, id)
    expect(counts).toMatchObject({ targeted: 40, sent: 4, skipped: 36 })
    expect(
      await on.sql(
        `select distinct text from app.test_letters l join app.campaign_deliveries d on d.id = l.delivery_id where d.variant = 'b'`,
      ),
    ).toEqual([{ text: 'Goodbye' }])
  })

  test('is not there in a project that has not registered it, and a campaign belongs to its channel', async () => {
    const without = await harness.project()
    const patch = JSON.stringify({ name: 'News', text: 'Hello', audience: { all: true } })
    await expect(admin(without, 'campaign_create', { patch, is_production: true })).rejects.toThrow()
    expect(await without.sql('select id from app.campaigns')).toEqual([])
    const on = await withPigeons()
    await lofts(on, [{ loft: 'near' }])
    const id = await make(on)
    await expect(admin(on, 'campaign_get', { campaign_id: id, channel: 'push' })).rejects.toThrow(/NOT_FOUND|campaign/)
  })
})

test('the machine names no channel', async () => {
  const folder = async (path: string) => (await readdir(join(root, path))).map((name) => join(path, name))
  const files = [
    ...(await folder('functions/tenant/campaigns')),
    ...(await folder('server/routes/campaigns')),
    'policies/tenant/campaigns.sql',
    'workers/campaigns.ts',
    'workers/tasks/campaigns__plan.ts',
    'workers/tasks/campaigns__send.ts',
  ]
  const branches =
    /channel\s*(?:=|<>|in|===|!==)\s*(?:\(\s*)?'|'(?:push|email)'\s*(?:then|=>|\?)|internal\.(?:push|email)_|app\.(?:push|email)_/
  for (const path of files)
    for (const line of (await readFile(join(root, path), 'utf8')).split('\n')) expect(line, path).not.toMatch(branches)
})
