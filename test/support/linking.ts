import { afterEach } from 'vitest'
import { type Device, newPhone, startStage } from '#test/support/sign_in.ts'

/** A stage with the requests that link and unlink ways to sign in. */
export const startLinking = async () => {
  const stage = await startStage()
  const { harness, project, app, device } = stage

  afterEach(async () => {
    harness.setTime(null)
    await project.sql(`delete from app.rate_limits where key like 'client login app%'`)
  })

  const link = (by: Device, body: object) => by.post('/client/auth/link', body)
  const unlink = (by: Device, body: object) => by.post('/client/auth/unlink', body)
  const linkEmail = async (by: Device, email: string, more: object = {}) =>
    link(by, { provider: 'email', email, code: await stage.code(email, 'link', by), ...more })
  const linkSocial = async (by: Device, provider: 'apple' | 'google', claims: object = {}) =>
    link(by, { provider, id_token: await stage.socialToken(provider, { ...claims }) })
  /** A user with a verified phone, written by SQL instead of by a code. */
  const withPhone = async (by: Device) => {
    const phone = newPhone()
    await project.sql('update app.users set phone = $2, phone_verified = true where id = $1', [by.id, phone])
    return phone
  }
  const linkedEvents = async (userId: string) =>
    (
      await project.sql(
        `select properties ->> 'provider' as provider from app.engagement_events
          where app_user_id = $1 and event_name = 'svc.user.identity_linked' order by id`,
        [userId],
      )
    ).map(({ provider }) => provider)

  return { stage, harness, project, app, device, link, unlink, linkEmail, linkSocial, withPhone, linkedEvents }
}
