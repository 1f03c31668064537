import { createHash } from 'node:crypto'
import { refusal } from '#server/errors.ts'
import type { HandlerContext } from '#server/http/route.ts'

type Request = Pick<HandlerContext, 'request'>

/** 1 to 255 printable ASCII characters. */
const printable = /^[ -~]{1,255}$/
const reason = 'must be 1 to 255 printable ASCII characters'

const refuseAs = (code: string) => () =>
  refusal(400, code, `Idempotency-Key: ${reason}`, { field: 'Idempotency-Key', reason })

/** Reads and validates the header; every route uses this function. `refuse` makes the error for routes with a different format. */
export const idempotencyKey = (
  { request }: Request,
  refuse: (reason: string) => Error = refuseAs('VALIDATION_ERROR'),
): string | undefined => {
  const key = request.headers['idempotency-key']
  if (key === undefined) return undefined
  if (typeof key !== 'string' || !printable.test(key)) throw refuse(reason)
  return key
}

/** The arguments of a function that replays responses: the key, and the hash of the body. Empty without the header. */
export const idempotency = (context: Request, code = 'VALIDATION_ERROR') => {
  const key = idempotencyKey(context, refuseAs(code))
  if (key === undefined) return {}
  const body = String(context.request.body ?? '')
  return { idempotency_key: key, body_hash: createHash('sha256').update(body).digest('hex') }
}
