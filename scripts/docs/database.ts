import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { pino } from 'pino'
import { startEmbeddedPostgres } from '#fleet/embedded/server.ts'
import { createTenantDatabase } from '#fleet/load/migrate.ts'
import { startPostgres } from '#fleet/postgres.ts'
import { prepare } from '#fleet/prepare.ts'
import { readConfig } from '#server/config.ts'
import { type Cluster, connectAdmin, maintenanceDatabase } from '#server/database/cluster.ts'
import { controlName, templateName } from '#server/database/names.ts'
import { hooksPage } from './hooks.ts'
import { interfaceFile } from './interface.ts'
import { schemaPage } from './schema.ts'

/** The pages that are made from databases. */
export const databasePages = async (control: pg.Client, tenant: pg.Client): Promise<[file: string, text: string][]> => [
  ['server/interface.json', await interfaceFile(control, tenant)],
  ['docs/hooks.md', await hooksPage(control, tenant)],
  ['docs/schema/control.sql', await schemaPage('control', control)],
  ['docs/schema/tenant.sql', await schemaPage('tenant', tenant)],
]

/** The same from an installation that is made for it, and removed. */
export const freshDatabasePages = async (): Promise<[file: string, text: string][]> => {
  const folder = await mkdtemp(join(tmpdir(), 'trellis-docs-'))
  const embedded = await startEmbeddedPostgres({
    dataDir: folder,
    superuserPassword: 'docs',
    sync: false,
    maxConnections: 50,
    log: () => undefined,
  })
  try {
    const secret = Buffer.alloc(32, 7).toString('base64')
    const config = readConfig({ DATABASE_URL: embedded.url, SECRETS_KEY: secret, DATA_DIR: folder })
    // unchecked: the check reads the routes, and these read what is made here
    const { cluster } = await prepare(await startPostgres(config, pino({ level: 'warn' })), { isUnchecked: true })
    return await withDatabases(cluster, config.DATABASE_PREFIX)
  } finally {
    await embedded.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

const withDatabases = async (cluster: Cluster, prefix: string) => {
  const admin = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
  const name = `${prefix}_docs`
  await createTenantDatabase(admin, name, templateName(prefix))
  await admin.end()
  const clients = await Promise.all([controlName(prefix), name].map((each) => connectAdmin(cluster, each)))
  try {
    const [control, tenant] = clients as [pg.Client, pg.Client]
    return await databasePages(control, tenant)
  } finally {
    await Promise.all(clients.map((client) => client.end()))
  }
}
