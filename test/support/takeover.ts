import { randomUUID } from 'node:crypto'
import { afterEach, beforeAll, expect } from 'vitest'
import { anonymousId, type Device, newEmail, newPhone, startStage } from '#test/support/sign_in.ts'

export type Attacker = {
  readonly email: string
  readonly anonymousId: string
  readonly phone: string
  readonly google: { sub: string; email: string; email_verified: boolean }
  readonly device: Device
  readonly elsewhere: Device
}

/** Account take-over: anybody can sign up with another person's address. Tests of it play both attacker and victim. */
export const startTakeover = async () => {
  const stage = await startStage()
  const { harness, project, device } = stage

  afterEach(async () => {
    harness.setTime(null)
    // these tests do not concern the rate limit of the whole app
    await project.sql(`delete from app.rate_limits where key like 'client login app%'`)
  })

  /** The hook of other areas when an account is reclaimed: a function that is found by its name. */
  beforeAll(() =>
    project.sql(`
      create table app.take_back_probes (app_user_id uuid);
      create function internal.account_reclaim__probe(app_user_id uuid) returns void language sql security definer set search_path = '' as
        'insert into app.take_back_probes values (account_reclaim__probe.app_user_id)';
      create function internal.account_reclaim__other(text) returns void language sql as 'select 1/0';
      revoke execute on function internal.account_reclaim__probe, internal.account_reclaim__other from public`),
  )
  const probed = (userId: string) => project.sql('select 1 from app.take_back_probes where app_user_id = $1', [userId])

  /** Links a phone by SQL, as a code would; text messages have tests of their own. */
  const linkPhone = (userId: string, phone: string) =>
    project.sql(
      `with phone as (update app.users set phone = $2, phone_verified = true where id = $1)
       insert into app.user_identities (app_user_id, provider, provider_id) values ($1, 'phone', $2)`,
      [userId, phone],
    )

  /** The attacker's account under the victim's address, with every credential that an attacker can attach. */
  const attack = async (): Promise<Attacker> => {
    const [email, anonymous, phone] = [newEmail(), anonymousId(), newPhone()]
    const google = { sub: randomUUID(), email: newEmail(), email_verified: true }
    const made = await stage.signup(email)
    const id_token = await stage.socialToken('google', google)
    expect((await made.post('/client/auth/link', { provider: 'google', id_token })).status).toBe(200)
    await linkPhone(made.id, phone)
    await project.sql('update app.users set anonymous_id = $2 where id = $1', [made.id, anonymous])
    const elsewhere = device(await stage.login(email))
    // an open code of the attacker for another address, to be used later
    await made.post('/client/auth/email/otp/request', { email: newEmail(), purpose: 'link' })
    return { email, anonymousId: anonymous, phone, google, device: made, elsewhere }
  }

  return { stage, harness, project, app: stage.app, device, probed, attack }
}
