import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { afterAll, expect, inject } from 'vitest'
import {
  type Answer,
  type Client,
  type Harness,
  type HarnessOptions,
  type Project,
  startHarness,
} from '#test/support/harness.ts'
import { type IdentityProvider, startIdentityProvider } from '#test/support/identity_provider.ts'
import { type MailServer, startMailServer } from '#test/support/smtp.ts'

export const password = 'a long passphrase'
export const bundleId = 'org.example.orchard'
export const googleClientId = 'orchard.apps.googleusercontent.com'
export const newEmail = () => `user-${randomUUID()}@example.org`
export const newPhone = () => `+4915${String(Math.floor(Math.random() * 1e9)).padStart(9, '0')}`
export const anonymousId = () => `anon_${randomUUID()}`

/** A signed-in device. */
export type Device = Client & {
  readonly id: string
  readonly token: string
  readonly refresh: string
  readonly user: any
}

/** Everything that sign-in talks to, real: a server, a mail server, two identity providers; and a project that knows them. */
export type Stage = {
  readonly harness: Harness
  readonly mail: MailServer
  readonly apple: IdentityProvider
  readonly google: IdentityProvider
  readonly project: Project
  readonly app: Client
  /** A new project with audiences and a redirect URL. */
  newProject(): Promise<Project>
  device(answer: Answer, on?: Project): Device
  signup(email: string, more?: object): Promise<Device>
  anonymous(id?: string): Promise<Device>
  login(email: string, word?: string): Promise<Answer>
  /** Asks for a code and reads it from the mail. */
  code(email: string, purpose?: string, by?: Client): Promise<string>
  /** Asks for a link and reads its token from the mail. */
  magicToken(email: string): Promise<string>
  verifyCode(email: string, code: string): Promise<Answer>
  verifyLink(token: string): Promise<Answer>
  social(provider: 'apple' | 'google', claims: Record<string, unknown>, more?: object): Promise<Answer>
  socialToken(provider: 'apple' | 'google', claims: Record<string, unknown>): Promise<string>
  me(device: Pick<Device, 'token'>): Promise<Answer>
  identities(userId: string): Promise<string[]>
  /** Holds the user's row until every call waits for it, one behind the other in this order: the race, as it is worst. */
  queued(userId: string, calls: (() => Promise<Answer>)[]): Promise<Answer[]>
}

const ownerUrl = (project: Project): string => {
  const url = new URL(inject('dsn'))
  url.pathname = `/${project.database}`
  return url.href
}

export const startStage = async (options: HarnessOptions = {}): Promise<Stage> => {
  const mail = await startMailServer()
  let harness: Harness | undefined
  const now = () => harness?.now() ?? new Date()
  const apple = await startIdentityProvider('https://appleid.apple.com', now, 'ES256')
  const google = await startIdentityProvider('https://accounts.google.com', now, 'RS256')
  const env = { SMTP_URL: mail.url, APPLE_JWKS_URL: apple.jwksUrl, GOOGLE_JWKS_URL: google.jwksUrl, ...options.env }
  const running = await startHarness({ ...options, env })
  harness = running
  afterAll(async () => {
    await running.stop()
    await Promise.all([mail.stop(), apple.stop(), google.stop()])
  })

  const newProject = async () => {
    const made = await running.project()
    await made.developer.patch(`/admin/projects/${made.id}`, {
      bundle_id: bundleId,
      google_oauth_client_id: googleClientId,
      magic_link_redirect_url: 'orchard://signed-in',
      auth_email_brand_name: 'Orchard',
    })
    return made
  }
  const project = await newProject()
  const { app } = project

  const device = ({ status, data, text }: Answer, on = project): Device => {
    expect([200, 201], text).toContain(status)
    return {
      ...on.app.with({ authorization: `Bearer ${data.session_token}` }),
      id: data.user.id,
      token: data.session_token,
      refresh: data.refresh_token,
      user: data.user,
    }
  }
  const lastText = async (address: string) => {
    await project.drain()
    return mail.to(address).at(-1)?.text ?? ''
  }
  const socialToken: Stage['socialToken'] = (provider, claims) => {
    const audience = { apple: bundleId, google: googleClientId }[provider]
    return { apple, google }[provider].token({ aud: audience, sub: randomUUID(), ...claims })
  }

  return {
    harness: running,
    mail,
    apple,
    google,
    project,
    app,
    newProject,
    device,
    signup: async (email, more = {}) =>
      device(await app.post('/client/auth/email/signup', { email, password, ...more })),
    anonymous: async (id) => device(await app.post('/client/auth/anonymous', { anonymous_id: id })),
    login: (email, word = password) => app.post('/client/auth/email/login', { email, password: word }),
    async code(email, purpose = 'sign_in', by = app) {
      expect((await by.post('/client/auth/email/otp/request', { email, purpose })).status).toBe(200)
      const code = /^(\d{6})$/m.exec(await lastText(email.trim().toLowerCase()))?.[1]
      expect(code, 'a code in the mail').toBeDefined()
      return code ?? ''
    },
    async magicToken(email) {
      expect((await app.post('/client/auth/magic-link/request', { email })).status).toBe(200)
      const token = /token=([\w-]{43})/.exec(await lastText(email.trim().toLowerCase()))?.[1]
      expect(token, 'a token in the mail').toBeDefined()
      return token ?? ''
    },
    verifyCode: (email, code) => app.post('/client/auth/email/otp/verify', { email, code }),
    verifyLink: (token) => app.post('/client/auth/magic-link/verify', { token }),
    social: async (provider, claims, more = {}) =>
      app.post('/client/auth/social', { provider, id_token: await socialToken(provider, claims), ...more }),
    socialToken,
    me: ({ token }) => app.get('/client/users/me', { authorization: `Bearer ${token}` }),
    async queued(userId, calls) {
      const waiting = async () =>
        Number(
          (
            await project.sql(
              `select count(distinct l.pid) as n from pg_locks l join pg_stat_activity a on a.pid = l.pid
                where a.datname = current_database() and not l.granted`,
            )
          )[0].n,
        )
      const holder = new pg.Client({ connectionString: ownerUrl(project), options: '-c role=trellis_owner' })
      await holder.connect()
      try {
        await holder.query('begin')
        await holder.query('select from app.users where id = $1 for update', [userId])
        const answers: Promise<Answer>[] = []
        for (const call of calls) {
          answers.push(call())
          await expect.poll(waiting, { interval: 5 }).toBe(answers.length)
        }
        await holder.query('commit')
        return await Promise.all(answers)
      } finally {
        await holder.end()
      }
    },
    identities: async (userId) =>
      (
        await project.sql(
          'select provider, provider_id from app.user_identities where app_user_id = $1 order by provider, provider_id',
          [userId],
        )
      ).map((row) => `${row.provider} ${row.provider_id}`),
  }
}
