import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { dataOf, type Reply } from '#server/database/database.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { data, Time, Uuid } from '#server/http/schemas.ts'

export const Developer = z.strictObject({
  id: Uuid,
  email: z.string(),
  name: z.string().nullable(),
  oauth_providers: z.array(z.string()),
  email_verified: z.boolean(),
  has_password: z.boolean(),
  account_state: z.enum(['sandbox', 'verified_free', 'paid']),
  can_provision: z.boolean(),
  created_at: Time,
  updated_at: Time,
})

/** Titles: several ways to sign in answer this, and the document keeps the names that it had with one of them. */
export const SignedIn = data(
  z
    .strictObject({ access_token: z.string(), refresh_token: z.string(), developer: Developer })
    .meta({ title: 'SignInDeveloperResult' }),
).meta({ title: 'SignInDeveloperReply' })

/** The client of a session, as the session stores it. */
export const visitor = ({ request }: HandlerContext) => ({
  ip: request.ip,
  user_agent: request.headers['user-agent']?.slice(0, 500),
})

/** A new session's id and refresh token, and the values that a sign-in function stores. */
export const signInTokens = async ({ services }: HandlerContext) => {
  const sid = randomUUID()
  const refresh = await services.tokens.developerRefresh(sid)
  return { sid, refresh: refresh.token, stored: { sid, refresh_hash: refresh.hash } }
}

/** A sign-in function returned {developer}: adds the tokens of the session that it stored. */
export const withTokens = async (
  { services }: HandlerContext,
  reply: Reply,
  { sid, refresh }: { sid: string; refresh: string },
) => {
  const { developer } = dataOf<{ developer: { id: string } }>(reply)
  const access_token = await services.tokens.developerAccess(developer.id, sid)
  return { status: reply.status, body: JSON.stringify({ data: { access_token, refresh_token: refresh, developer } }) }
}
