import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Secrets } from '#server/secrets.ts'

/** What somebody may do later without credentials: put one file in one place. */
export type Ticket = {
  readonly projectId: string
  /** Whose the upload is; null: the server's. */
  readonly userId: string | null
  readonly bucket: string
  readonly key: string
  readonly replaces: boolean
}

export type Tickets = {
  issue(ticket: Ticket, expiresAt: Date): string
  /** Null when it was altered or has expired. */
  read(text: string): Ticket | null
}

/** Permissions to upload, which their holder shows: HMAC-SHA-256 with a key that derives from SECRETS_KEY. */
export const createTickets = (secrets: Secrets, now: () => Date): Tickets => {
  const key = secrets.derive('media tickets')
  const signatureOf = (body: string) => createHmac('sha256', key).update(body).digest('base64url')
  return {
    issue({ projectId, userId, bucket, key: path, replaces }, expiresAt) {
      const fields = [projectId, userId, bucket, path, replaces, Math.floor(expiresAt.getTime() / 1000)]
      const body = Buffer.from(JSON.stringify(fields)).toString('base64url')
      return `${body}.${signatureOf(body)}`
    },
    read(text) {
      const [body = '', signature = ''] = text.split('.')
      const [given, wanted] = [Buffer.from(signature), Buffer.from(signatureOf(body))]
      if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return null
      // of a body that this server has signed: what is in it has its form
      const [projectId, userId, bucket, path, replaces, expires] = JSON.parse(Buffer.from(body, 'base64url').toString())
      return expires > now().getTime() / 1000 ? { projectId, userId, bucket, key: path, replaces } : null
    },
  }
}
