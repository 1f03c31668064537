import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Someone, startReferrals } from '#test/support/referrals.ts'

const { project, admin, setDefaults, someone, known, promo, mine, claimed, xp, uses } = await startReferrals()

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
    for (const text of ['select api.referral_mine()', `select api.referral_claim('${code.code}')`])
      await expect(project.as('app_user', claims, text)).rejects.toThrow('There is no such user')
    expect(await uses(code.id)).toBe(0)
  })

  test('a definer function asks who calls', async () => {
    const user = await someone()
    for (const [role, caller, text] of [
      ['app_user', 'client_key', `select api.referral_claim('x')`],
      ['app_user', 'client_key', 'select api.referral_mine()'],
      ['app_user', 'client_key', 'select api.referral_claims_mine(1, 0)'],
      ['app_auth', 'user', `select api.referral_show('x')`],
      ['app_worker', 'user', 'select api.referral_release(internal.new_id())'],
    ] as const)
      await expect(project.as(role, { 'app.user_id': user.id, 'app.caller': caller }, text)).rejects.toThrow(/not/)
  })

  test('a bundle contains each side’s own part, and deletion keeps the other side’s', async () => {
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
