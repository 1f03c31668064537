/** The signed cursors of pages of rows. */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import { refusal } from '#server/errors.ts'
import type { Secrets } from '#server/secrets.ts'

/** Where a page begins: the key of the last row of the previous page, as text, and that row's id. */
export type After = { readonly key: string | null; readonly id: string }

/** Deriving a key takes longer than the rest of a request, and a key given as bytes is made into an object at each use. */
const keys = new WeakMap<Secrets, KeyObject>()
const keyOf = (secrets: Secrets): KeyObject => {
  const known = keys.get(secrets)
  if (known) return known
  const made = createSecretKey(secrets.derive('collection cursors', 32))
  keys.set(secrets, made)
  return made
}

const seal = (secrets: Secrets, query: string, payload: string): Buffer =>
  createHmac('sha256', keyOf(secrets)).update(query).update('\0').update(payload).digest().subarray(0, 16)

/**
 * A cursor holds a row's key, which the caller has seen, and is signed together with its query: it cannot be
 * changed, nor used with another filter, order or collection. `query` identifies the query.
 */
export const writeCursor = (secrets: Secrets, query: string, { key, id }: After): string => {
  const payload = Buffer.from(JSON.stringify([key, id]))
  return Buffer.concat([seal(secrets, query, payload.toString('base64')), payload]).toString('base64url')
}

export const readCursor = (secrets: Secrets, query: string, cursor: string): After => {
  const bytes = Buffer.from(cursor, 'base64url')
  const payload = bytes.subarray(16)
  const isOurs =
    bytes.length > 16 &&
    bytes.toString('base64url') === cursor &&
    timingSafeEqual(bytes.subarray(0, 16), seal(secrets, query, payload.toString('base64')))
  if (!isOurs) {
    throw refusal(400, 'INVALID_BODY', 'cursor: does not belong to this query', {
      path: 'cursor',
      reason: 'is not one of this query',
    })
  }
  const [key, id] = JSON.parse(payload.toString()) as [string | null, string]
  return { key, id }
}
