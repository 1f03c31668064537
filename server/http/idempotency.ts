import { createHash } from 'node:crypto'
import { refusal } from '#server/errors.ts'
import type { HandlerContext } from '#server/http/route.ts'

/** Supplement 0.6: 1 to 255 printable ASCII characters. */
const printable = /^[ -~]{1,255}$/
const reason = 'must be 1 to 255 printable ASCII characters'

/** The arguments of a function that answers a repeated request again: the header, and what the body was. None without the header. */
export const idempotency = ({ request }: Pick<HandlerContext, 'request'>, code = 'VALIDATION_ERROR') => {
  const key = request.headers['idempotency-key']
  if (key === undefined) return {}
  if (typeof key !== 'string' || !printable.test(key)) {
    throw refusal(400, code, `Idempotency-Key: ${reason}`, { field: 'Idempotency-Key', reason })
  }
  const body = String(request.body ?? '')
  return { idempotency_key: key, body_hash: createHash('sha256').update(body).digest('hex') }
}
