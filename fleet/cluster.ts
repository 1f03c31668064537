import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { controlRoles, loginPassword, type Role, tenantRoles } from '#server/database/cluster.ts'
import { root } from '#server/root.ts'
import { type Secrets, scramVerifier } from '#server/secrets.ts'

/** Makes the roles and their logins. Safe to run again; the lock must be held. */
export const bootstrapRoles = async (client: pg.Client, secrets: Secrets): Promise<void> => {
  const verifiers = Object.fromEntries(
    [...controlRoles, ...tenantRoles].map((role) => [role, scramVerifier(loginPassword(secrets, `login_${role}`))]),
  )
  const text = await readFile(join(root, 'sql/cluster/roles.sql'), 'utf8')
  await client.query(`select set_config('trellis.verifiers', $1, false)`, [JSON.stringify(verifiers)])
  await client.query(text)
  await client.query(`select set_config('trellis.verifiers', '', false)`)
}

/**
 * Only our logins may connect, and only to the kind of database that is theirs; nobody makes temporary tables. Tried again when
 * another process changes the privileges of the same database at this moment.
 */
export const grantConnect = async (client: pg.Client, database: string, roles: readonly Role[]): Promise<void> => {
  const name = pg.escapeIdentifier(database)
  const everybody = [...controlRoles, ...tenantRoles].flatMap((role) => [role, `login_${role}`]).join(', ')
  const logins = roles.map((role) => `login_${role}`).join(', ')
  const statement = `revoke all on database ${name} from public, ${everybody}; grant connect on database ${name} to ${logins}`
  for (let attempt = 1; ; attempt += 1) {
    try {
      await client.query(statement)
      return
    } catch (error) {
      if (attempt >= 10 || !(error as Error).message.includes('tuple concurrently updated')) throw error
      await sleep(20 * attempt)
    }
  }
}

export const databaseExists = async (client: pg.Client, database: string): Promise<boolean> => {
  const { rowCount } = await client.query('select from pg_database where datname = $1', [database])
  return rowCount === 1
}
