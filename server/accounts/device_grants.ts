/** Sign-in of tools without a browser (RFC 8628). */
import { randomBytes, randomInt } from 'node:crypto'
import { signInTokens, visitor, withTokens } from '#server/accounts/sign_in.ts'
import { dataOf } from '#server/database/database.ts'
import { asSignIn, perIp, perSubject, takeLimits } from '#server/http/limits.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { sha256 } from '#server/secrets.ts'

/** Consonants alone, as RFC 8628, 6.1 advises: no letter is taken for another one or for a digit, and no word comes out. */
const letters = 'BCDFGHJKLMNPQRSTVWXZ'
const lengthOfUserCode = 8
const lifetimeSeconds = 600
const intervalSeconds = 5

/** What is stored of a user code: 34 bits are guessed from a plain hash, so it is worth nothing without SECRETS_KEY. */
const userCodeMac = ({ services }: HandlerContext, code: string): string =>
  services.secrets.mac('device user code', code.toUpperCase().replace(/[\s-]/g, ''))

export const create = async (context: HandlerContext) => {
  const { body, call, request, services } = context
  await takeLimits(context, perIp('device code', request.ip, [10, 'minute']))
  const device_code = randomBytes(32).toString('base64url')
  for (;;) {
    const code = Array.from({ length: lengthOfUserCode }, () => letters[randomInt(letters.length)]).join('')
    const stored = await call('device_grant_create', {
      device_hash: sha256(device_code),
      user_code_mac: userCodeMac(context, code),
      client_name: body['client_name'],
      ip: request.ip,
    })
    // two live grants never share a user code
    if (!dataOf<boolean>(stored)) continue
    const answer = {
      device_code,
      user_code: `${code.slice(0, 4)}-${code.slice(4)}`,
      verification_uri: `${services.publicUrl}/device`,
      expires_in: lifetimeSeconds,
      interval: intervalSeconds,
    }
    return { status: 200, body: JSON.stringify({ data: answer }) }
  }
}

export const redeem = async (context: HandlerContext) => {
  await takeLimits(context, perIp('device token', context.request.ip, [120, 'minute']))
  const tokens = await signInTokens(context)
  const reply = await context.call('device_grant_redeem', {
    device_hash: sha256(context.body['device_code'] as string),
    ...tokens.stored,
    ...visitor(context),
  })
  return reply.status === 200 ? withTokens(context, reply, tokens) : reply
}

/** Guessing a user code is bounded for an account and for an address: both kinds of request count together. */
const takeGuess = (context: HandlerContext) =>
  takeLimits(asSignIn(context), [
    ...perIp('device user code', context.request.ip, [20, 'minute'], [200, 'day']),
    ...perSubject('device user code', context.resolved.developer?.developerId ?? '', [20, 'minute'], [200, 'day']),
  ])

export const find = async (context: HandlerContext) => {
  await takeGuess(context)
  return context.call('device_grant_get', { user_code_mac: userCodeMac(context, context.body['user_code'] as string) })
}

export const decide = async (context: HandlerContext) => {
  await takeGuess(context)
  const { user_code, approve } = context.body as { user_code: string; approve: boolean }
  return context.call('device_grant_approve', { user_code_mac: userCodeMac(context, user_code), approve })
}
