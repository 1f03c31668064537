import type { Role } from '#server/database/cluster.ts'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { addressKey } from '#server/http/rate_limiter.ts'
import type { HandlerContext, Limit } from '#server/http/route.ts'

const minute = 60
const hour = 3600
const day = 86_400

/** A named limit: `perIp('signup', request.ip, [5, 'minute'], [50, 'day'])`. */
type Window = readonly [max: number, unit: 'minute' | 'quarter' | 'hour' | 'day']
const seconds = { minute, quarter: 15 * minute, hour, day }

const limits = (key: string, windows: readonly Window[]): Limit[] =>
  windows.map(([max, unit]) => ({ key: `${key} ${unit}`, max, seconds: seconds[unit] }))

export const perIp = (name: string, ip: string, ...windows: Window[]) => limits(`${name} ip ${addressKey(ip)}`, windows)
export const perSubject = (name: string, subject: string, ...windows: Window[]) => limits(`${name} ${subject}`, windows)

/**
 * Counts one attempt against every limit, or against none and refuses with 429 and `Retry-After`. In a separate statement: in the
 * request's transaction a refusal would undo the count.
 */
export const takeLimits = async (
  { call }: Pick<HandlerContext, 'call'>,
  wanted: readonly Limit[],
  code = 'RATE_LIMIT_EXCEEDED',
) => {
  const { wait } = dataOf<{ wait: number | null }>(
    await call('rate_limit_take', { limits: wanted }, { readOnly: false }),
  )
  if (wait === null) return
  throw refusal(
    429,
    code,
    'Too many attempts: wait before the next one.',
    { retry_after_seconds: wait },
    { 'Retry-After': String(wait) },
  )
}

/** Refunds an attempt that did not fail to a limit on failures. */
export const refundLimits = async ({ call }: Pick<HandlerContext, 'call'>, taken: readonly Limit[]) => {
  await call('rate_limit_give_back', { keys: taken.map((limit) => limit.key) }, { readOnly: false })
}

/** Calls in another role. */
const inRole =
  (role: Role) =>
  ({ call }: Pick<HandlerContext, 'call'>): Pick<HandlerContext, 'call'> => ({
    call: (name, args, settings) => call(name, args, { ...settings, role }),
  })

/** Only the sign-in role may use counters and password hashes: routes of other callers call with that role. */
export const asSignIn = inRole('control_auth')
/** The same in a project's database. */
export const asUserSignIn = inRole('app_auth')
