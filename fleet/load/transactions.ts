import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from 'pg'
import type { DatabaseError } from '#server/database/failures.ts'

/** Locks that others hold, and catalog rows that autovacuum has just touched. */
const isPassing = ({ code = '', message }: DatabaseError) =>
  ['55P03', '40P01', '40001'].includes(code) || message.includes('tuple concurrently updated')

/**
 * Work in a transaction that `begin` opens. Schema changes take exclusive locks, and requests lock the same tables in orders of their own: we
 * give up well before Postgres looks for deadlocks (after a second), so that it is never a request which is broken off, and try again.
 */
export const retryPassing = async <T>(client: Client, begin: string, work: () => Promise<T>): Promise<T> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await client.query(begin)
      const result = await work()
      await client.query('commit')
      return result
    } catch (error) {
      await client.query('rollback').catch(() => undefined)
      if (attempt >= 100 || !isPassing(error as DatabaseError)) throw error
      await sleep(Math.min(500, 20 * attempt) + Math.random() * 50)
    }
  }
}

export const inTransaction = <T>(client: Client, work: () => Promise<T>): Promise<T> =>
  retryPassing(
    client,
    `begin; set local lock_timeout = '200ms'; set local check_function_bodies = off; set local search_path = ''`,
    work,
  )
