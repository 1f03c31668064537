import { hash, timingSafeEqual } from 'node:crypto'
import { refusal } from '#server/errors.ts'
import type { Secrets } from '#server/secrets.ts'

/** Where a page begins: the key of the last row before it, as text, and that row's id. */
export type After = { readonly key: string | null; readonly id: string }

type Pads = { readonly inner: Buffer; readonly outer: Buffer }

/** The key in the two forms that HMAC takes; deriving it takes longer than the rest of a request. */
const pads = new WeakMap<Secrets, Pads>()
const padsOf = (secrets: Secrets): Pads => {
  const known = pads.get(secrets)
  if (known) return known
  const key = Buffer.concat([secrets.derive('collection cursors', 32), Buffer.alloc(32)])
  const made = { inner: key.map((byte) => byte ^ 0x36) as Buffer, outer: key.map((byte) => byte ^ 0x5c) as Buffer }
  pads.set(secrets, made)
  return made
}

/** HMAC-SHA-256 (RFC 2104) by its two hashes: `createHmac` takes as long as writing a page of rows, most of it to begin. */
const seal = (secrets: Secrets, query: string, payload: string): Buffer => {
  const { inner, outer } = padsOf(secrets)
  const first = hash('sha256', Buffer.concat([inner, Buffer.from(`${query}\0${payload}`)]), 'buffer')
  return hash('sha256', Buffer.concat([outer, first]), 'buffer').subarray(0, 16)
}

/**
 * A cursor holds a row's key, which the caller has seen, and is signed together with the query that it belongs to: it cannot be
 * changed, nor used with another filter, order or collection. `query` says which query that is.
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
    throw refusal(400, 'INVALID_BODY', 'cursor: is not one of this query', {
      path: 'cursor',
      reason: 'is not one of this query',
    })
  }
  const [key, id] = JSON.parse(payload.toString()) as [string | null, string]
  return { key, id }
}
