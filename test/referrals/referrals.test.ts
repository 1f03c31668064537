import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { freshIp } from '#test/support/harness.ts'
import { startReferrals } from '#test/support/referrals.ts'

const {
  harness,
  project,
  admin,
  setDefaults,
  refused,
  someone,
  known,
  promo,
  mine,
  claim,
  claimed,
  xp,
  brought,
  uses,
  eventsOf,
} = await startReferrals()

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
    expect(await eventsOf(user)).toMatchObject([
      { properties: { claim_id: made.data.claim.id, code, referrer_id: owner.id, state: 'rewarded' } },
    ])
    expect(await eventsOf(owner)).toEqual([])
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

test('a promo code that one user claims fifty times at once is claimed once, and the others cost no attempt', async () => {
  const user = await someone()
  const code = await promo({ reward_referee: { xp: 1 } })
  const answers = await Promise.all(Array.from({ length: 50 }, () => claim(user, code.code)))
  expect(answers.map(({ status }) => status).sort()).toEqual([...Array(49).fill(200), 201])
  expect(await xp(user)).toBe(1)
  // one attempt of five is counted
  for (let n = 0; n < 4; n += 1) refused(await claim(user, `nobody${n}`), 404, 'REFERRAL_NOT_FOUND')
  refused(await claim(user, 'nobody'), 429, 'RATE_LIMITED')
})

describe('a claim is refused', () => {
  test('of an unknown code, and of invalid fields', async () => {
    const user = await someone()
    refused(await claim(user, 'nobodyhas'), 404, 'REFERRAL_NOT_FOUND')
    for (const code of ['', 5, null])
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
    expect(await eventsOf(other)).toEqual([])
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
