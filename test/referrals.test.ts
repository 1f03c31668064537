import { randomUUID } from 'node:crypto'
import { decodeJwt } from 'jose'
import { afterEach, describe, expect, test } from 'vitest'
import { type Answer, freshIp, startHarness } from '#test/support/harness.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
const { admin } = project
afterEach(async () => {
  harness.setTime(null)
  await setDefaults({ reward_referrer: {}, reward_referee: {}, max_uses: null, qualify_event: null, share_url: null })
})

const setDefaults = async (fields: Record<string, unknown>) => {
  const answer = await admin.patch('/referrals/defaults', fields)
  expect(answer.status, answer.text).toBe(200)
  return answer.data
}
const refused = (answer: Answer, status: number, code: string, details?: object) => {
  expect([answer.status, answer.error?.code], answer.text).toEqual([status, code])
  if (details) expect(answer.error?.details).toMatchObject(details)
}
/** With a server key's client: sessions end after an hour, server keys do not. */
const someone = async () => {
  const { id } = await project.user()
  return { id, ...project.onBehalfOf(id) }
}
type Someone = Awaited<ReturnType<typeof someone>>
const known = async () => {
  const user = await someone()
  await verify(user)
  return user
}
const verify = (user: Someone) => project.sql('update app.users set email_verified = true where id = $1', [user.id])
const promo = async (fields: Record<string, unknown> = {}) => {
  const answer = await admin.post('/referrals', fields)
  expect(answer.status, answer.text).toBe(201)
  return answer.data
}
const mine = async (user: Someone) => (await user.get('/client/referrals/me')).data
const claim = (user: Someone, code: string) => user.post('/client/referrals/claim', { code })
const claimed = async (user: Someone, code: string) => {
  const answer = await claim(user, code)
  expect(answer.status, answer.text).toBe(201)
  return answer.data
}
const xp = async (user: Someone) => (await user.get('/client/xp')).data.total
const brought = async (user: Someone) => (await user.get('/client/referrals/me/claims')).body
const states = async (user: Someone) => (await brought(user)).data.map(({ state }: { state: string }) => state)
const uses = async (id: string) =>
  (await project.sql('select uses from app.referral_codes where id = $1', [id]))[0].uses
const told = (user: Someone) =>
  project.sql(
    `select properties from app.engagement_events where app_user_id = $1 and event_name = 'svc.referral.claimed' order by id`,
    [user.id],
  )
const days = (n: number) => harness.advance(n * 86_400)

test('what a claim gives to its owner counts where challenges, rules and boosts ask for a segment', async () => {
  const own = await harness.project()
  const [owner, claimer] = await Promise.all(
    [0, 1].map(async () => {
      const { id } = await own.user()
      await own.sql('update app.users set email_verified = true where id = $1', [id])
      return { id, ...own.onBehalfOf(id) }
    }),
  )
  if (!owner || !claimer) throw new Error('there are two')
  const segment = (await own.admin.post('/segments', { key: 'members', name: 'Members', rules: { and: [] } })).data.id
  const window = { start_at: '2026-01-01T00:00:00Z', end_at: '2126-01-01T00:00:00Z' }
  const challenge = { name: 'Earn', goal_type: 'xp_earned', goal_value: 30, segment_id: segment, ...window }
  expect((await own.admin.post('/challenges', challenge)).status).toBe(201)
  const rule = { key: 'again', name: 'Again', event_name: 'svc.referral.claimed', amount: 5 }
  expect((await own.admin.post('/xp/rules', rule)).status).toBe(201)
  const boost = {
    name: 'Double',
    multiplier: 2,
    starts_at: window.start_at,
    ends_at: window.end_at,
    segment_id: segment,
  }
  expect((await own.admin.post('/xp/boosts', boost)).status).toBe(201)
  await own.admin.patch('/referrals/defaults', { reward_referrer: { xp: 40 }, reward_referee: { xp: 10 } })
  const { code } = (await owner.get('/client/referrals/me')).data
  const answer = await claimer.post('/client/referrals/claim', { code })
  expect(answer.status, answer.text).toBe(201)
  const progress = async (user: typeof owner) => (await user.get('/client/challenges')).data[0].my
  expect(await progress(owner)).toMatchObject({ progress: 40, status: 'completed' })
  expect((await owner.get('/client/xp')).data.total).toBe(40)
  expect((await claimer.get('/client/xp')).data.total).toBe(20)
})

describe('codes of administrators', () => {
  test('are made with a code or without, listed newest first, changed, deleted, and the trail says so', async () => {
    const own = await harness.project()
    const made = await own.admin.post('/referrals', { code: 'Spring Sale-24', reward_referee: { xp: 5, odd: [1] } })
    expect(made.status).toBe(201)
    expect(made.data).toEqual({
      id: expect.any(String),
      code: 'Spring Sale-24',
      reward_referrer: {},
      reward_referee: { xp: 5, odd: [1] },
      max_uses: null,
      uses: 0,
      is_active: true,
      app_user_id: null,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    })
    const made2 = await own.admin.post('/referrals', { max_uses: 2, reward_referrer: { xp: 1 } })
    expect(made2.data.code).toMatch(/^[A-HJKMNP-Z2-9]{8}$/)
    const list = await own.admin.get('/referrals?limit=1')
    expect(list.body).toMatchObject({ total: 2, offset: 0, limit: 1 })
    expect(list.data).toEqual([made2.data])
    expect((await own.admin.get('/referrals?offset=1')).data).toEqual([made.data])

    const path = `/referrals/${made.data.id}`
    expect((await own.admin.patch(path, {})).data).toEqual(made.data)
    expect((await own.admin.patch(path, { code: 'OTHER', uses: 9 })).data).toEqual(made.data)
    const fields = { reward_referrer: { a: 1 }, reward_referee: {}, max_uses: 3, is_active: false }
    expect((await own.admin.patch(path, fields)).data).toMatchObject({ code: 'Spring Sale-24', ...fields })
    expect((await own.admin.patch(path, { max_uses: null })).data).toMatchObject({ ...fields, max_uses: null })
    const gone = await own.admin.delete(path)
    expect([gone.status, gone.data]).toEqual([200, { deleted: true }])
    for (const id of [made.data.id, randomUUID(), 'x'])
      for (const answer of [
        await own.admin.delete(`/referrals/${id}`),
        await own.admin.patch(`/referrals/${id}`, { is_active: true }),
        await own.admin.get(`/referrals/${id}/stats`),
      ])
        refused(answer, 404, 'NOT_FOUND')
    const trail = (await own.admin.get('/audit-events?target_type=referrals')).data
    expect(trail.map(({ action }: { action: string }) => action)).toEqual(
      ['delete', 'update', 'update', 'create', 'create'].map((verb) => `referrals.${verb}`),
    )
  })

  test('read the same without case, spaces and dashes, so only one of them can be', async () => {
    await promo({ code: 'Twin-ONE' })
    for (const code of ['TWINONE', 'twin one', 't-w-i-n-o-n-e'])
      refused(await admin.post('/referrals', { code }), 409, 'CONFLICT', { field: 'code' })
  })

  test('have eight letters that are all as likely', async () => {
    const rows = await project.sql(
      `select c.letter, count(*)::int as n
         from (select internal.referral_code_new() as code from generate_series(1, 800)) g, string_to_table(g.code, null) c (letter) group by 1`,
    )
    expect(rows).toHaveLength(31)
    // 206 of each are to be expected; six standard deviations
    for (const { n } of rows) expect(Math.abs(n - 206)).toBeLessThan(86)
  })

  test.each([
    ['code', 'ab'],
    ['code', 'a-b'],
    ['code', 'x'.repeat(33)],
    ['code', '-abc'],
    ['code', 'abc '],
    ['code', 'a.b.c'],
    ['code', 'ábcd'],
    ['code', 7],
    ['max_uses', 0],
    ['max_uses', 1.5],
    ['max_uses', 2_147_483_648],
    ['reward_referrer', []],
    ['reward_referee', 'xp'],
    ['reward_referee', null],
    ['reward_referrer', { note: 'x'.repeat(8192) }],
  ])('with a bad %s (%j) are refused', async (field, value) => {
    const before = (await admin.get('/referrals')).body.total
    refused(await admin.post('/referrals', { [field]: value }), 400, 'INVALID_INPUT', { field })
    expect((await admin.get('/referrals')).body.total).toBe(before)
  })

  test.each([
    ['max_uses', 0],
    ['reward_referrer', null],
    ['reward_referee', [1]],
    ['is_active', null],
    ['is_active', 'yes'],
  ])('are not changed by a bad %s', async (field, value) => {
    const code = await promo()
    refused(await admin.patch(`/referrals/${code.id}`, { max_uses: 7, [field]: value }), 400, 'INVALID_INPUT', {
      field,
    })
    expect((await admin.get(`/referrals/${code.id}/stats`)).data.referral_code).toEqual(code)
  })

  test('show their claims, newest first', async () => {
    harness.setTime('2026-11-21T12:00:00Z')
    const code = await promo({ reward_referee: { xp: 1 } })
    const [a, b] = [await someone(), await someone()]
    const first = await claimed(a, code.code)
    harness.advance(1)
    await claimed(b, code.code)
    const stats = (await admin.get(`/referrals/${code.id}/stats`)).data
    expect(stats).toMatchObject({ referral_code: { ...code, uses: 2 }, total_claims: 2 })
    expect(stats.claims.map(({ claimer_id }: { claimer_id: string }) => claimer_id)).toEqual([b.id, a.id])
    expect(stats.claims[1]).toEqual({
      id: first.claim.id,
      claimer_id: a.id,
      claimed_at: '2026-11-21T12:00:00.000Z',
      state: 'rewarded',
      qualify_event: null,
      qualify_by: null,
      qualified_at: null,
      rewarded_at: '2026-11-21T12:00:00.000Z',
    })
    const second = (await admin.get(`/referrals/${code.id}/stats?limit=1&offset=1`)).data
    expect([second.total_claims, second.claims]).toEqual([2, [stats.claims[1]]])
  })
})

describe('defaults', () => {
  test('are read with an empty body, changed in part, audited, and held to their rules', async () => {
    const own = await harness.project()
    const before = await own.admin.patch('/referrals/defaults', {})
    expect(before.data).toEqual({
      reward_referrer: {},
      reward_referee: {},
      max_uses: null,
      qualify_event: null,
      qualify_within_days: null,
      share_url: null,
      updated_at: expect.any(String),
    })
    const fields = {
      reward_referrer: { xp: 50 },
      reward_referee: { xp: 20 },
      max_uses: 10,
      qualify_event: 'bought',
      qualify_within_days: 14,
      share_url: 'https://example.org/?ref={code}',
    }
    expect((await own.admin.patch('/referrals/defaults', fields)).data).toMatchObject(fields)
    // the days go with their event
    expect((await own.admin.patch('/referrals/defaults', { qualify_event: null })).data).toMatchObject({
      ...fields,
      qualify_event: null,
      qualify_within_days: null,
    })
    for (const [field, value] of [
      ['qualify_within_days', 3],
      ['qualify_within_days', 0],
      ['qualify_within_days', 366],
      ['qualify_event', ' bought'],
      ['qualify_event', ''],
      ['max_uses', 0],
      ['reward_referrer', null],
      ['share_url', 'http://example.org/{code}'],
      ['share_url', 'https://example.org/'],
    ] as const)
      refused(await own.admin.patch('/referrals/defaults', { [field]: value }), 400, 'VALIDATION_ERROR', { field })
    refused(await own.admin.patch('/referrals/defaults', '[]'), 400, 'INVALID_BODY')
    const trail = (await own.admin.get('/audit-events?target_type=referrals')).data
    expect(trail.map(({ target }: any) => target.id)).toEqual(['defaults', 'defaults'])
  })
})

describe("a user's code", () => {
  test('is made at the first call, with the defaults of that time, once also when ten ask at once', async () => {
    await setDefaults({ reward_referee: { xp: 3 }, max_uses: 7, share_url: 'https://example.org/i/{code}' })
    const user = await someone()
    const answers = await Promise.all(Array.from({ length: 10 }, () => mine(user)))
    const { code } = answers[0]
    expect(code).toMatch(/^[A-HJKMNP-Z2-9]{8}$/)
    for (const answer of answers)
      expect(answer).toEqual({
        ...{ code, url: `https://example.org/i/${code}`, claims: 0, max_uses: 7, rewards_granted: 0, claimed: null },
      })
    await setDefaults({ reward_referee: { xp: 4 }, max_uses: null, share_url: null })
    expect(await mine(user)).toMatchObject({ code, url: null, max_uses: 7 })
    const [row] = await project.sql('select * from app.referral_codes where app_user_id = $1', [user.id])
    expect(row).toMatchObject({ code, reward_referee: { xp: 3 }, uses: 0 })
    // one that an administrator deleted is followed by another
    await admin.delete(`/referrals/${row.id}`)
    expect((await mine(user)).code).not.toBe(code)
  })

  test('rewards both sides at once when the claimer is known, and each once', async () => {
    await setDefaults({ reward_referrer: { xp: 50 }, reward_referee: { xp: 20 } })
    const [owner, user] = [await someone(), await known()]
    const { code } = await mine(owner)
    const made = await claim(user, ` ${code.slice(0, 4).toLowerCase()}-${code.slice(4)}\u2013`)
    expect(made.status).toBe(201)
    expect(made.data).toEqual({
      claim: { id: expect.any(String), code, claimed_at: expect.any(String) },
      reward: { xp: 20 },
    })
    expect([await xp(owner), await xp(user)]).toEqual([50, 20])
    const again = await claim(user, code)
    expect([again.status, again.data]).toEqual([200, made.data])
    expect([await xp(owner), await xp(user)]).toEqual([50, 20])
    expect(await mine(owner)).toMatchObject({ claims: 1, rewards_granted: 1, claimed: null })
    expect((await mine(user)).claimed).toEqual({ code, claimed_at: made.data.claim.claimed_at })
    const [{ display_name, avatar_url }] = await project.sql('select * from app.users where id = $1', [user.id])
    expect(await brought(owner)).toEqual({
      data: [
        {
          id: made.data.claim.id,
          code,
          state: 'rewarded',
          claimed_at: made.data.claim.claimed_at,
          qualify_by: null,
          rewarded_at: expect.any(String),
          claimer: { display_name, avatar_url },
        },
      ],
      ...{ total: 1, offset: 0, limit: 50 },
    })
    expect(await brought(user)).toMatchObject({ data: [], total: 0 })
    expect(await told(user)).toMatchObject([
      { properties: { claim_id: made.data.claim.id, code, referrer_id: owner.id, state: 'rewarded' } },
    ])
    expect(await told(owner)).toEqual([])
  })

  test('is claimed by ten at once as often as it may be, and never more', async () => {
    await setDefaults({ reward_referrer: { xp: 1 }, reward_referee: { xp: 1 }, max_uses: 3 })
    const owner = await someone()
    const { code } = await mine(owner)
    const users = await Promise.all(Array.from({ length: 10 }, known))
    const answers = await Promise.all(users.map((user) => claim(user, code)))
    const won = answers.filter(({ status }) => status === 201)
    expect(won).toHaveLength(3)
    for (const answer of answers) if (answer.status !== 201) refused(answer, 409, 'REFERRAL_EXHAUSTED')
    expect([await xp(owner), (await mine(owner)).claims]).toEqual([3, 3])
    expect((await Promise.all(users.map(xp))).filter((total) => total === 1)).toHaveLength(3)
  })

  test('is claimed once when the same user claims it five times at once, or two codes', async () => {
    await setDefaults({ reward_referrer: { xp: 1 }, reward_referee: { xp: 1 } })
    const [one, two, user] = [await someone(), await someone(), await known()]
    const [a, b] = [(await mine(one)).code, (await mine(two)).code]
    const answers = await Promise.all([a, a, a, b, b].map((code) => claim(user, code)))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    for (const answer of answers) if (answer.status > 201) refused(answer, 409, 'REFERRAL_ALREADY_CLAIMED')
    expect(await xp(user)).toBe(1)
    expect((await xp(one)) + (await xp(two))).toBe(1)
  })

  test('two users may claim each other, also at the same moment', async () => {
    await setDefaults({ reward_referrer: { xp: 1 }, reward_referee: { xp: 2 } })
    for (let round = 0; round < 5; round += 1) {
      const [a, b] = [await known(), await known()]
      const codes = [(await mine(b)).code, (await mine(a)).code]
      const answers = await Promise.all([claim(a, codes[0]), claim(b, codes[1])])
      expect(answers.map(({ status }) => status)).toEqual([201, 201])
      expect([await xp(a), await xp(b)]).toEqual([3, 3])
    }
  })
})

describe('a claim is refused', () => {
  test('of an unknown code, and its fields are judged', async () => {
    const user = await someone()
    refused(await claim(user, 'nobodyhas'), 404, 'REFERRAL_NOT_FOUND')
    for (const code of ['', 'x'.repeat(101), 5, null])
      refused(await user.post('/client/referrals/claim', { code }), 400, 'VALIDATION_ERROR', { field: 'code' })
    refused(await user.post('/client/referrals/claim', '[]'), 400, 'INVALID_BODY')
    // none of these was an attempt but the first
    for (let n = 0; n < 4; n += 1) refused(await claim(user, 'nobodyhas'), 404, 'REFERRAL_NOT_FOUND')
    refused(await claim(user, 'nobodyhas'), 429, 'RATE_LIMITED')
  })

  test('of one’s own code, and of another account of the same install', async () => {
    const user = await known()
    const own = await mine(user)
    refused(await claim(user, own.code), 400, 'SELF_REFERRAL', { reason: 'same_user' })
    const other = await known()
    await project.sql(
      `update app.user_sessions set original_anonymous_id = (select anonymous_id from app.users where id = $1) where app_user_id = $2`,
      [user.id, other.id],
    )
    refused(await claim(other, own.code), 400, 'SELF_REFERRAL', { reason: 'same_device' })
    refused(await claim(user, (await mine(other)).code), 400, 'SELF_REFERRAL', { reason: 'same_device' })
    expect(await told(other)).toEqual([])
  })

  test('of a code that is switched off, used up, or whose owner is banned', async () => {
    const user = await someone()
    const off = await promo({ max_uses: 1 })
    await admin.patch(`/referrals/${off.id}`, { is_active: false })
    refused(await claim(user, off.code), 409, 'REFERRAL_INACTIVE')
    await admin.patch(`/referrals/${off.id}`, { is_active: true })
    await claimed(await someone(), off.code)
    refused(await claim(user, off.code), 409, 'REFERRAL_EXHAUSTED')
    await admin.patch(`/referrals/${off.id}`, { max_uses: 2 })
    await claimed(user, off.code)
    expect(await uses(off.id)).toBe(2)
    const owner = await someone()
    const { code } = await mine(owner)
    await project.sql('update app.users set is_banned = true where id = $1', [owner.id])
    refused(await claim(user, code), 409, 'REFERRAL_INACTIVE')
  })

  test('of a second user’s code, also when the first is gone; of promo codes each once', async () => {
    const [a, b, user] = [await someone(), await someone(), await someone()]
    await claimed(user, (await mine(a)).code)
    refused(await claim(user, (await mine(b)).code), 409, 'REFERRAL_ALREADY_CLAIMED')
    await admin.delete(`/users/${a.id}`)
    refused(await claim(user, (await mine(b)).code), 409, 'REFERRAL_ALREADY_CLAIMED')
    const [one, two] = [await promo({ reward_referee: { xp: 1 } }), await promo({ reward_referee: { xp: 10 } })]
    await claimed(user, one.code)
    await claimed(user, two.code)
    expect((await claim(user, one.code)).status).toBe(200)
    expect(await xp(user)).toBe(11)
    expect(await uses(one.id)).toBe(1)
  })

  test('after five tries an hour, which refusals use up and replays do not', async () => {
    harness.setTime(new Date())
    const user = await someone()
    const code = await promo()
    await claimed(user, code.code)
    for (let n = 0; n < 4; n += 1) refused(await claim(user, `nobody${n}`), 404, 'REFERRAL_NOT_FOUND')
    const last = await claim(user, (await promo()).code)
    refused(last, 429, 'RATE_LIMITED')
    expect(Number(last.headers.get('retry-after'))).toBeGreaterThan(3500)
    expect((await claim(user, code.code)).status).toBe(200)
    harness.advance(3601)
    await claimed(user, (await promo()).code)
  })
})

describe('the reward of a referrer', () => {
  test('waits until the claimer has a verified identity: an address, a phone, a provider', async () => {
    await setDefaults({ reward_referrer: { xp: 5 }, reward_referee: { xp: 1 } })
    const owner = await someone()
    const { code } = await mine(owner)
    const users = [await someone(), await someone(), await someone()] as const
    for (const user of users) await claimed(user, code)
    // an address that was only claimed is none
    await project.sql(`update app.users set email = $2 where id = $1`, [users[0].id, `u-${randomUUID()}@example.org`])
    await project.sql(`insert into app.user_identities (app_user_id, provider, provider_id) values ($1, 'email', $2)`, [
      users[0].id,
      randomUUID(),
    ])
    await project.drain()
    expect([await xp(owner), await xp(users[0])]).toEqual([0, 1])
    expect(await states(owner)).toEqual(['pending', 'pending', 'pending'])
    await verify(users[0])
    await project.sql('update app.users set phone_verified = true where id = $1', [users[1].id])
    await project.sql(
      `insert into app.user_identities (app_user_id, provider, provider_id) values ($1, 'google', $2)`,
      [users[2].id, randomUUID()],
    )
    // it is the worker's: whoever verifies holds no lock on the referrer
    expect(await xp(owner)).toBe(0)
    await project.drain()
    expect([await xp(owner), await states(owner)]).toEqual([15, ['rewarded', 'rewarded', 'rewarded']])
    await project.sql('update app.users set email_verified = false where id = $1', [users[0].id])
    await verify(users[0])
    await project.drain()
    expect(await xp(owner)).toBe(15)
  })

  test('waits for the event of the defaults, done after the claim and in time', async () => {
    harness.setTime(new Date())
    await setDefaults({ reward_referrer: { xp: 5 }, qualify_event: 'bought', qualify_within_days: 7 })
    const owner = await someone()
    const { code } = await mine(owner)
    const [before, other, late, good] = [await known(), await known(), await known(), await known()]
    const buy = (user: Someone, event_name = 'bought') => user.post('/client/events', { event_name })
    await buy(before)
    harness.advance(1)
    for (const user of [before, other, late, good]) await claimed(user, code)
    await setDefaults({ qualify_event: null })
    expect(await states(owner)).toEqual(['pending', 'pending', 'pending', 'pending'])
    await buy(other, 'looked')
    days(7)
    await buy(good)
    await buy(good)
    // on time to the millisecond, and a second later
    expect(await states(owner)).toEqual(expect.arrayContaining(['pending', 'expired']))
    harness.advance(1)
    await buy(late)
    await project.drain()
    expect(await xp(owner)).toBe(5)
    expect((await states(owner)).sort()).toEqual(['expired', 'expired', 'expired', 'rewarded'])
    expect(await mine(owner)).toMatchObject({ claims: 4, rewards_granted: 1 })
    const rows = await project.sql(
      'select state, count(*)::int as n from app.referral_claims where referrer_id = $1 group by 1 order by 1',
      [owner.id],
    )
    expect(rows).toEqual([
      { state: 'expired', n: 3 },
      { state: 'rewarded', n: 1 },
    ])
  })

  test('an event dated back by its device does not qualify; one that waited for verification does, later', async () => {
    harness.setTime(new Date())
    await setDefaults({ reward_referrer: { xp: 5 }, qualify_event: 'bought', qualify_within_days: 2 })
    const owner = await someone()
    const { code } = await mine(owner)
    const [late, unknown] = [await known(), await someone()]
    const session = await project.user()
    await verify({ ...session })
    const asSession = await session.post('/client/referrals/claim', { code })
    expect(asSession.status).toBe(201)
    for (const user of [late, unknown]) await claimed(user, code)
    const at = new Date(harness.now().getTime() + 1000).toISOString()
    await unknown.post('/client/events', { event_name: 'bought' })
    await project.drain()
    expect(await xp(owner)).toBe(0)
    days(3)
    // a server's word is good: it says when it was
    await late.post('/client/events', { event_name: 'bought', occurred_at: at })
    await project.sql(
      `insert into app.engagement_events (id, app_user_id, event_name, occurred_at, received_at, source)
       values (internal.new_id(), $1, 'bought', $2, $3, 'client')`,
      [session.id, at, harness.now().toISOString()],
    )
    await verify(unknown)
    await project.drain()
    const rows = await project.sql('select claimer_id, state from app.referral_claims where referrer_id = $1', [
      owner.id,
    ])
    const stateOf = Object.fromEntries(rows.map((row) => [row.claimer_id, row.state]))
    expect([stateOf[unknown.id], stateOf[session.id]]).toEqual(['rewarded', 'expired'])
  })

  test('is given once however often and at once the worker looks', async () => {
    await setDefaults({ reward_referrer: { xp: 5 } })
    const [owner, user] = [await someone(), await someone()]
    const { claim: made } = await claimed(user, (await mine(owner)).code)
    await verify(user)
    const claims = { 'app.caller': 'worker' }
    await Promise.all(
      Array.from({ length: 8 }, () =>
        project.as('app_worker', claims, 'select r.status, r.body::text from api.referral_release($1) r', [made.id]),
      ),
    )
    expect(await xp(owner)).toBe(5)
    expect(
      await project.sql(`select count(*)::int as n from app.reward_grants where source_id = $1`, [made.id]),
    ).toEqual([{ n: 1 }])
  })

  test('keeps what was promised when the code or its rewards go; ends when the referrer does', async () => {
    await setDefaults({ reward_referrer: { xp: 5 } })
    const [owner, other, a, b] = [await someone(), await someone(), await someone(), await someone()]
    await claimed(a, (await mine(owner)).code)
    await claimed(b, (await mine(other)).code)
    const [{ id }] = await project.sql('select id from app.referral_codes where app_user_id = $1', [owner.id])
    await admin.patch(`/referrals/${id}`, { reward_referrer: { xp: 999 } })
    await admin.delete(`/referrals/${id}`)
    await admin.delete(`/users/${other.id}`)
    await verify(a)
    await verify(b)
    await project.drain()
    expect(await xp(owner)).toBe(5)
    expect(
      await project.sql('select state, referrer_id, code_id from app.referral_claims where claimer_id = $1', [b.id]),
    ).toEqual([{ state: 'expired', referrer_id: null, code_id: null }])
  })

  test('is not paid for an account that was taken back from who had claimed it', async () => {
    await setDefaults({ reward_referrer: { xp: 5 } })
    const [owner, victim] = [await someone(), await someone()]
    await claimed(victim, (await mine(owner)).code)
    await project.sql(`begin; set local app.caller = 'sign_in'; select internal.take_back('${victim.id}'); commit`)
    await verify(victim)
    await project.drain()
    expect([await xp(owner), (await mine(owner)).claims]).toEqual([0, 0])
    // who proved the address may say who brought them
    await claimed(victim, (await mine(owner)).code)
    expect(await xp(owner)).toBe(5)
  })
})

describe('two users who become one', () => {
  const merge = (survivor: string, other: string) =>
    project.sql(
      `begin; set local app.caller = 'user'; set local app.user_id = '${survivor}'; select internal.users_merge('${survivor}', '${other}'); commit`,
    )
  test('bring a claim along, which their identity then releases', async () => {
    await setDefaults({ reward_referrer: { xp: 5 }, reward_referee: { xp: 2 } })
    const [owner, guest, user] = [await someone(), await someone(), await known()]
    await claimed(guest, (await mine(owner)).code)
    await merge(user.id, guest.id)
    await project.drain()
    expect([await xp(owner), await xp(user)]).toEqual([5, 2])
    expect((await mine(user)).claimed).not.toBeNull()
  })

  test('keep one claim and one reward where both had claimed', async () => {
    await setDefaults({ reward_referrer: { xp: 5 }, reward_referee: { xp: 2 } })
    const shared = await promo({ reward_referee: { xp: 100 } })
    const [a, b, guest, user] = [await someone(), await someone(), await someone(), await known()]
    await claimed(user, (await mine(a)).code)
    await claimed(guest, (await mine(b)).code)
    for (const who of [user, guest]) await claimed(who, shared.code)
    await merge(user.id, guest.id)
    await project.drain()
    expect([await xp(a), await xp(b), await xp(user)]).toEqual([5, 0, 102])
    expect(await project.sql('select from app.referral_claims where claimer_id = $1', [user.id])).toHaveLength(2)
  })

  test('are not paid for having brought themselves; a code moves where there is none', async () => {
    await setDefaults({ reward_referrer: { xp: 5 } })
    const [guest, user, other] = [await someone(), await someone(), await someone()]
    const { code } = await mine(guest)
    await claimed(user, code)
    await claimed(other, code)
    await merge(user.id, guest.id)
    await verify(user)
    await verify(other)
    await project.drain()
    expect(await mine(user)).toMatchObject({ code, rewards_granted: 1 })
    expect(await xp(user)).toBe(5)
  })
})

test('a code whose owner becomes the claimer while they claim it is their own', async () => {
  await setDefaults({ reward_referrer: { xp: 5 }, reward_referee: { xp: 2 } })
  const [user, guest] = [await project.user(), await project.user()]
  const { code } = (await guest.get('/client/referrals/me')).data
  const [sid, from] = [user, guest].map(({ sessionToken }) => String(decodeJwt(sessionToken)['sid']))
  const merging = await openTransaction(project, 'app_auth', {
    'app.caller': 'user',
    'app.user_id': user.id,
    'app.session_id': sid ?? '',
  })
  expect(await merging.query('select r.status from api.auth_merge($1, $2) r', [guest.id, from])).toEqual([
    { status: 200 },
  ])
  const answer = user.post('/client/referrals/claim', { code })
  await untilBlocked(project)
  await merging.commit()
  refused(await answer, 400, 'SELF_REFERRAL', { reason: 'same_user' })
  expect((await user.get('/client/xp')).data.total).toBe(0)
})

describe('the invite screen', () => {
  test('sees a code with the key alone: valid, whose it is, and what one gets', async () => {
    await setDefaults({ reward_referee: { xp: 3 } })
    const user = await someone()
    const { code } = await mine(user)
    const look = (text: string) => project.app.get(`/client/referrals/${encodeURIComponent(text)}`)
    const shown = await look(`${code.slice(0, 3).toLowerCase()} ${code.slice(3)}`)
    const [{ display_name, avatar_url }] = await project.sql('select * from app.users where id = $1', [user.id])
    expect([shown.status, shown.data]).toEqual([
      200,
      { valid: true, referrer: { display_name, avatar_url }, reward_referee: { xp: 3 } },
    ])
    const one = await promo({ max_uses: 1 })
    expect((await look(one.code)).data).toEqual({ valid: true, referrer: null, reward_referee: {} })
    await claimed(user, one.code)
    expect((await look(one.code)).data.valid).toBe(false)
    await admin.patch(`/referrals/${one.id}`, { max_uses: null, is_active: false })
    expect((await look(one.code)).data.valid).toBe(false)
    await project.sql('update app.users set is_banned = true where id = $1', [user.id])
    expect((await look(code)).data.valid).toBe(false)
    refused(await look('nobodyhas'), 404, 'REFERRAL_NOT_FOUND')
  })

  test('is asked for 30 times a minute from one address', async () => {
    const from = { 'x-forwarded-for': freshIp() }
    for (let n = 0; n < 30; n += 1)
      expect((await project.app.get('/client/referrals/nobodyhas', from)).status).toBe(404)
    refused(await project.app.get('/client/referrals/nobodyhas', from), 429, 'RATE_LIMITED')
  })
})

describe('in the database', () => {
  test('users reach no code and no claim but the count of what they brought', async () => {
    const [owner, user] = [await someone(), await someone()]
    await claimed(user, (await mine(owner)).code)
    const as = (who: Someone, text: string) =>
      project.as('app_user', { 'app.user_id': who.id, 'app.caller': 'user' }, text)
    expect(await as(owner, 'select id from app.referral_claims')).toHaveLength(1)
    expect(await as(user, 'select id from app.referral_claims')).toEqual([])
    for (const text of [
      'select claimer_id from app.referral_claims',
      'select * from app.referral_codes',
      `update app.referral_claims set state = 'rewarded'`,
      `insert into app.referral_claims (code, claimer_id, is_personal, state, reward_referrer, reward_referee) values ('x', internal.user_id(), false, 'pending', '{}', '{}')`,
      'select api.referral_release(internal.new_id())',
      'select internal.referral_pay(null)',
    ])
      await expect(as(owner, text)).rejects.toThrow(/permission denied/)
  })

  test('a user who has just gone claims nothing and gets no code', async () => {
    const code = await promo()
    const claims = { 'app.user_id': randomUUID(), 'app.caller': 'user' }
    for (const text of ['select internal.referral_mine()', `select internal.referral_claim('${code.code}')`])
      await expect(project.as('app_user', claims, text)).rejects.toThrow('There is no such user')
    expect(await uses(code.id)).toBe(0)
  })

  test('a definer function asks who calls', async () => {
    const user = await someone()
    for (const [role, caller, text] of [
      ['app_user', 'client_key', `select internal.referral_claim('x')`],
      ['app_user', 'client_key', 'select internal.referral_mine()'],
      ['app_user', 'client_key', 'select internal.referral_brought(1, 0)'],
      ['app_auth', 'user', `select internal.referral_shown('x')`],
      ['app_worker', 'user', 'select internal.referral_release(internal.new_id())'],
    ] as const)
      await expect(project.as(role, { 'app.user_id': user.id, 'app.caller': caller }, text)).rejects.toThrow(/not/)
  })

  test('a bundle tells each side its own, and deletion leaves the other’s', async () => {
    await setDefaults({ reward_referrer: { xp: 5 }, reward_referee: { xp: 2 } })
    const [owner, user] = [await someone(), await known()]
    const { claim: made } = await claimed(user, (await mine(owner)).code)
    const bundle = async (who: Someone) =>
      (await admin.get(`/users/${who.id}/export`)).text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
        .filter(({ section }) => section === 'referral_claims')
        .map((line) => line.data)
    const [ofUser] = await bundle(user)
    expect(ofUser).toMatchObject({ id: made.id, claimer_id: user.id, reward_referee: { xp: 2 } })
    expect(ofUser).not.toHaveProperty('referrer_id')
    const [ofOwner] = await bundle(owner)
    expect(ofOwner).toMatchObject({ id: made.id, referrer_id: owner.id, state: 'rewarded' })
    expect(ofOwner).not.toHaveProperty('claimer_id')
    await admin.delete(`/users/${user.id}`)
    expect(await bundle(owner)).toEqual([])
    expect(await xp(owner)).toBe(5)
  })
})
