/** What a handler of sign-in in the form of auth-js works with: our own routes, and the request. */
import type { FastifyRequest } from 'fastify'
import type { OurUser } from '#server/rest/auth_shapes.ts'
import type { Asked } from '#server/rest/through.ts'

/** Our own routes that sign-in is made of. */
export const signatures = {
  anonymous: 'POST /client/auth/anonymous',
  signup: 'POST /client/auth/email/signup',
  login: 'POST /client/auth/email/login',
  social: 'POST /client/auth/social',
  exchange: 'POST /client/auth/oauth/exchange',
  refresh: 'POST /client/auth/refresh',
  emailCode: 'POST /client/auth/email/otp/request',
  emailVerify: 'POST /client/auth/email/otp/verify',
  phoneCode: 'POST /client/auth/phone/otp/request',
  phoneVerify: 'POST /client/auth/phone/otp/verify',
  linkBegin: 'POST /client/auth/oauth/link',
  linkRequest: 'POST /client/auth/magic-link/request',
  linkVerify: 'POST /client/auth/magic-link/verify',
  link: 'POST /client/auth/link',
  unlink: 'POST /client/auth/unlink',
  password: 'POST /client/auth/password',
  logout: 'POST /client/auth/logout',
  sessions: 'GET /client/auth/sessions',
  endSession: 'DELETE /client/auth/sessions/:sessionId',
  jwks: 'GET /client/auth/jwks',
  me: 'GET /client/users/me',
  update: 'PATCH /client/users/me',
} as const

/** The routes of administrators that auth.admin is made of. */
export const adminSignatures = {
  userCreate: 'POST /admin/projects/:projectId/users',
  userList: 'GET /admin/projects/:projectId/users',
  userGet: 'GET /admin/projects/:projectId/users/:userId',
  userUpdate: 'PATCH /admin/projects/:projectId/users/:userId',
  userDelete: 'DELETE /admin/projects/:projectId/users/:userId',
} as const

export type AdministeredUser = OurUser & { readonly is_banned: boolean }
export type LinkSettings = { readonly magic_link_redirect_url: string | null }
export type MadeLink = {
  readonly user: AdministeredUser
  readonly properties: {
    readonly action_link: string | null
    readonly email_otp: string
    readonly hashed_token: string
    readonly redirect_to: string | null
  }
}

/** A route that a handler asks. */
export type Asks = keyof typeof signatures | keyof typeof adminSignatures

export type Fields = Readonly<Record<string, unknown>>
/** One request: what it says, and our routes as its sender. */
export type Context = {
  readonly request: FastifyRequest
  readonly query: Readonly<Record<string, string | undefined>>
  readonly body: Fields
  readonly now: () => Date
  /** The same session as a token with the claims that auth-js reads. */
  readonly sign: (token: string, user: OurUser) => Promise<string>
  /** Ways to sign in by their names in GoTrue, and the providers of a sign-in by redirect. */
  readonly offered: () => Promise<Readonly<Record<string, boolean>>>
  readonly ask: <T>(name: Asks, asked?: Asked) => Promise<T>
  /** A page of a list, with the number of all. */
  readonly list: <T>(name: Asks, asked?: Asked) => Promise<{ readonly data: readonly T[]; readonly total: number }>
  /** Sets a header of the response. */
  readonly header: (name: string, value: string) => void
  /** A link that is not mailed, for the user of an address, with a server key. */
  readonly link: (email: string) => Promise<MadeLink>
  /** Where links of the project lead. */
  readonly mailed: () => Promise<LinkSettings>
}
export type Handler = (context: Context) => Promise<unknown>
