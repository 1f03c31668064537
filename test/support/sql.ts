import { setTimeout as sleep } from 'node:timers/promises'
import { connectAdmin } from '#server/database/cluster.ts'
import type { Harness } from '#test/support/harness.ts'

/** The sessions of SQL queries on the whole server of databases, as a superuser sees them. */
export const sessionsOf = async (harness: Harness): Promise<{ pid: number; event: string | null; query: string }[]> => {
  const admin = await connectAdmin(harness.running.services.control.cluster, 'postgres', false)
  try {
    const { rows } = await admin.query(
      `select pid, wait_event as event, query from pg_stat_activity
        where application_name = 'trellis_sql' and datname like $1`,
      [`${harness.prefix}%`],
    )
    return rows
  } finally {
    await admin.end()
  }
}

/** Waits until so many queries are within pg_sleep. */
export const untilSleeping = async (harness: Harness, many: number): Promise<void> => {
  for (;;) {
    const sleeping = (await sessionsOf(harness)).filter(({ event }) => event === 'PgSleep')
    if (sleeping.length >= many) return
    await sleep(20)
  }
}
