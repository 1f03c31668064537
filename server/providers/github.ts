import { z } from 'zod'
import { refusal } from '#server/errors.ts'
import { displayNameOf } from '#server/providers/identity.ts'
import { canonicalAddress } from '#server/providers/mail_address.ts'
import type { Response, Upstream } from '#server/providers/upstream.ts'

export type GithubClient = { readonly id: string; readonly secret: string }
type Grant = { readonly code: string; readonly redirectUri: string; readonly verifier: string }
export type GithubUser = { readonly id: string; readonly email: string | null; readonly name: string | null }

/** `id` may be beyond the numbers of JavaScript one day: it is only compared, as text. */
const User = z.object({ id: z.int().positive(), login: z.string(), name: z.string().nullish() })
const Emails = z.array(z.object({ email: z.string(), primary: z.boolean(), verified: z.boolean() }))
const Token = z.object({ access_token: z.string().regex(/^[\x21-\x7e]{1,1000}$/) })

const unavailable = () =>
  refusal(503, 'SERVICE_UNAVAILABLE', 'GitHub cannot be reached: try again.', null, { 'Retry-After': '30' })

const answered = (answer: Awaited<ReturnType<Upstream['call']>>): Response => {
  if (answer.failure !== null || answer.status >= 500 || answer.status === 429) throw unavailable()
  return answer
}

const maxBytes = 256 * 1024

/** Exchanges a code for an access token; null when GitHub refuses the code, which it also does with a status of 200. */
const tokenOf = async (
  upstream: Upstream,
  client: GithubClient,
  grant: Grant,
  projectId: string,
): Promise<string | null> => {
  const body = new URLSearchParams({
    grant_type: 'authorization_code',
    client_id: client.id,
    client_secret: client.secret,
    code: grant.code,
    redirect_uri: grant.redirectUri,
    code_verifier: grant.verifier,
  })
  const answer = answered(
    await upstream.call({
      projectId,
      maxBytes,
      provider: 'github',
      method: 'POST',
      path: '/login/oauth/access_token',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: body.toString(),
    }),
  )
  return Token.safeParse(answer.json()).data?.access_token ?? null
}

/**
 * The GitHub account behind a code, with its primary address if that is verified; null when the code is refused. Throws 503 when GitHub is away. `projectId`:
 * for whose users, by default for developers.
 */
export const githubUser = async (
  upstream: Upstream,
  client: GithubClient,
  grant: Grant,
  projectId = 'control',
): Promise<GithubUser | null> => {
  const token = await tokenOf(upstream, client, grant, projectId)
  if (token === null) return null
  const read = async (path: string) =>
    answered(
      await upstream.call({
        projectId,
        maxBytes,
        provider: 'github_api',
        method: 'GET',
        path,
        headers: { authorization: `Bearer ${token}`, accept: 'application/vnd.github+json' },
      }),
    ).json()
  const [user, emails] = await Promise.all([read('/user'), read('/user/emails')])
  const found = User.safeParse(user).data
  if (!found) return null
  const primary = (Emails.safeParse(emails).data ?? []).find((entry) => entry.primary && entry.verified)
  return {
    id: String(found.id),
    email: primary ? canonicalAddress(primary.email) : null,
    name: displayNameOf(found.name ?? found.login),
  }
}
