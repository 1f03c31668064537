import type pg from 'pg'
import { changedChannel } from '#server/database/notifier.ts'
import type { Argument, Call } from './arguments.ts'

export const callOn =
  (control: pg.Client): Call =>
  async <T>(name: string, args: Readonly<Record<string, Argument>> = {}) => {
    const names = Object.keys(args).map((key, index) => `${key} => $${index + 1}`)
    await control.query('begin')
    const { rows } = await control.query<{ answer: T; changed: string | null }>(
      `select r as answer, current_setting('app.changed', true) as changed from internal.${name}(${names.join(', ')}) r`,
      Object.values(args),
    )
    await control.query('commit')
    // what was written to the audit trail; a running server seals what this cannot
    await control.query('select internal.audit_seal(1000)')
    const [row] = rows
    // after the commit: a server that looks again must find what changed
    if (row?.changed) await control.query('select pg_notify($1, $2)', [changedChannel, row.changed])
    return row?.answer as T
  }
