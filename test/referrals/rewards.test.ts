import { randomUUID } from 'node:crypto'
import { decodeJwt } from 'jose'
import { describe, expect, test } from 'vitest'
import { type Someone, startReferrals } from '#test/support/referrals.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const {
  harness,
  project,
  admin,
  setDefaults,
  refused,
  someone,
  known,
  verify,
  promo,
  mine,
  claimed,
  xp,
  states,
  days,
} = await startReferrals()

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
    await project.sql(
      `begin; set local app.caller = 'sign_in'; select internal.account_reclaim('${victim.id}'); commit`,
    )
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
