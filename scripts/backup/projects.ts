// What the commands that back up and restore one project need of the installation: control, the servers of projects, and where media are.
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import type { ProjectManifest } from '#fleet/backup/manifest.ts'
import type { Destination } from '#fleet/backup/project_restore.ts'
import { type Program, readProgram } from '#fleet/load/files.ts'
import type { Ask } from '#fleet/move/switch.ts'
import { startExistingPostgres } from '#fleet/postgres.ts'
import { columns } from '#server/columns.ts'
import type { Config } from '#server/config.ts'
import { type Cluster, connectAdmin } from '#server/database/cluster.ts'
import { checkKeys } from '#server/database/keys.ts'
import { controlName, templateName, tenantName } from '#server/database/names.ts'
import { StartError } from '#server/errors.ts'
import { uuidPattern } from '#server/http/schemas.ts'
import { createApiKey, createSigningKey } from '#server/http/tokens.ts'
import { createLog } from '#server/log.ts'
import { createFileStorage } from '#server/media/files.ts'
import { createS3Storage } from '#server/media/s3.ts'
import type { MediaStorage } from '#server/media/storage.ts'
import { root } from '#server/root.ts'
import type { Secrets } from '#server/secrets.ts'
import { callOn } from '../admin/call.ts'
import { ensureTemplate, type Known, knownClusters } from '../database/clusters.ts'
import { print } from './command.ts'

export type Context = {
  readonly control: pg.Client
  readonly clusters: readonly Known[]
  readonly storage: MediaStorage
  readonly secrets: Secrets
  readonly program: Program
  readonly template: string
  readonly prefix: string
  readonly ask: Ask
}

export const ownVersion = async (): Promise<string> =>
  (JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }).version

/** Work beside a server that runs, or on databases that nobody uses now. */
export const onControl = async (config: Config, work: (context: Context) => Promise<void>): Promise<void> => {
  const foundation = await startExistingPostgres(config, createLog(config))
  const storage = config.STORAGE_URL
    ? createS3Storage(config.STORAGE_URL, () => new Date())
    : createFileStorage(join(config.DATA_DIR, 'media'))
  try {
    const { secrets, postgres } = foundation
    const own: Cluster = { id: '', dsn: postgres.dsn, socketDirectory: postgres.socketDirectory }
    const prefix = config.DATABASE_PREFIX
    const control = await connectAdmin(own, controlName(prefix))
    try {
      await checkKeys(control, secrets)
      const [clusters, program] = [await knownClusters(foundation, own, control), await readProgram('tenant')]
      const template = templateName(prefix)
      await work({ control, clusters, storage, secrets, program, template, prefix, ask: callOn(control) })
    } finally {
      await control.end()
    }
  } finally {
    await storage.close()
    await foundation.postgres.stop()
  }
}

type Row = {
  readonly cluster_id: string
  readonly database_name: string
  readonly schema_version: string
  readonly status: string
  readonly project: ProjectManifest['project']
}

export const checkProjectId = (projectId: string): string => {
  if (!uuidPattern.test(projectId)) throw new StartError('--project is the id of a project.')
  return projectId
}

export const foundProject = async (
  control: pg.Client,
  clusters: readonly Known[],
  projectId: string,
  isGoneToo = false,
) => {
  const { rows } = await control.query<Row>(
    `select t.cluster_id, t.database_name, t.schema_version, t.status,
            json_build_object('id', p.id, 'name', p.name, 'organization_id', p.organization_id, 'bundle_id', p.bundle_id,
                              'google_oauth_client_id', p.google_oauth_client_id, 'platform', p.platform, 'environment', p.environment,
                              'magic_link_redirect_url', p.magic_link_redirect_url, 'auth_email_brand_name', p.auth_email_brand_name,
                              'user_search_enabled', p.user_search_enabled, 'rest_enabled', p.rest_enabled,
                              'anonymous_reads', p.anonymous_reads, 'graphql_enabled', p.graphql_enabled) as project
       from app.tenants t join app.projects p on p.id = t.project_id and p.deleted_at is null where t.project_id = $1`,
    [projectId],
  )
  const [row] = rows
  const cluster = clusters.find(({ id }) => id === row?.cluster_id)
  if (!row || !cluster || (row.status !== 'ready' && !isGoneToo))
    throw new StartError(`There is no project ${projectId} with a database that is ready.`)
  return { row, cluster }
}

/** Where a backup goes: into the project that it is of, or into one that is registered when its database is whole. */
export const destinationOf = (
  context: Context,
  projectId: string | null,
  newName: string,
  organization: string | null,
) => {
  const { control, clusters, program, template, secrets, prefix, ask } = context
  let register: () => Promise<void> = async () => undefined
  const find = async (manifest: ProjectManifest): Promise<Destination> => {
    if (projectId !== null) {
      if (manifest.project.id !== projectId)
        throw new StartError(
          `This is a backup of project ${manifest.project.id}: restore it there, or as another project by --new-project NAME.`,
        )
      const { row, cluster } = await foundProject(control, clusters, projectId, true)
      await ensureTemplate(control, cluster, template, program)
      return { cluster, projectId, database: row.database_name, isInPlace: true }
    }
    if (newName.length < 1 || newName.length > 200)
      throw new StartError('--new-project is a name of 1 to 200 characters.')
    const team = organization ?? manifest.project.organization_id
    const { rowCount } = await control.query('select from app.organizations o where o.id::text = $1', [team])
    if (rowCount !== 1) throw new StartError(`There is no organization ${team} here: name one by --organization ID.`)
    const { rows } = await control.query<{ id: string | null }>('select internal.choose_cluster() as id')
    const cluster = clusters.find(({ id }) => id === rows[0]?.id)
    if (!cluster) throw new StartError('There is no open server: add one with npm run db:cluster -- add.')
    await ensureTemplate(control, cluster, template, program)
    const id = randomUUID()
    const database = tenantName(prefix, id)
    register = async () => {
      const environment = manifest.project['environment'] === 'development' ? 'development' : 'production'
      const keys = [createApiKey('client', environment), createApiKey('server', environment)]
      await ask('operator_project_copied', {
        id,
        organization_id: team,
        source: JSON.stringify({ ...manifest.project, name: newName }),
        keys: JSON.stringify(keys.map(({ text: _text, ...stored }) => stored)),
        signing: JSON.stringify(createSigningKey(secrets, id)),
        cluster_id: cluster.id,
        database_name: database,
        schema_version: program.schemaVersion,
        content_hash: program.contentHash,
      })
      print(`restored  project ${id}, paused: npm run admin -- project unpause ${id}`)
      for (const line of columns(keys.map(({ text, key_type }) => [key_type, text]))) print(line)
    }
    return { cluster, projectId: id, database, isInPlace: false }
  }
  return { find, register: () => register() }
}
