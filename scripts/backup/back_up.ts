import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { backUpInstallation } from '#fleet/backup/installation.ts'
import { type BackupPlace, backupPlace, firstSegmentOf, type Writing } from '#fleet/backup/places.ts'
import { backUpProject } from '#fleet/backup/project.ts'
import { startExistingPostgres } from '#fleet/postgres.ts'
import { type Config, readConfig } from '#server/config.ts'
import { StartError } from '#server/errors.ts'
import { createLog } from '#server/log.ts'
import { listOf, print, run, textOf } from './command.ts'
import { checkProjectId, foundProject, onControl, ownVersion } from './projects.ts'

const usage = `Usage: npm run backup -- --to PLACE [options]

Backs up all databases and media of an installation with embedded Postgres, while it is used.

  --to PLACE           a file, a folder (ends with /, or is there), or s3://KEY:SECRET@host/bucket/prefix; default: BACKUP_TO
  --recipient AGE      encrypts for this recipient of age (age1…); may be given again
  --new-identity FILE  writes a new identity of age to FILE, prints its recipient, and ends
  --without-key        leaves the generated secrets.key out; who restores needs it from elsewhere
  --keep N             afterwards removes all but the newest N backups of the folder or prefix, and the segments in ARCHIVE_TO that none of them needs
  --project ID         backs up one project with its media, wherever its database is, also with DATABASE_URL and STORAGE_URL`

const readKeep = (value: unknown): number | undefined => {
  if (value === undefined) return undefined
  if (!/^[1-9]\d{0,4}$/.test(String(value))) throw new StartError('--keep is a number of backups, from 1.')
  return Number(value)
}

/** Segments before the first that the oldest kept backup needs serve nobody. */
const pruneArchive = async (folder: string, first: string): Promise<number> => {
  const names = (await readdir(folder)).filter((name) => /^[0-9A-F]{24}(\.[0-9A-F]{8}\.backup)?$/.test(name))
  // without the timeline, which changes with a restore
  const old = names.filter((name) => name.slice(8, 24) < first.slice(8))
  for (const name of old) await rm(join(folder, name), { force: true })
  return old.length
}

const prune = async (place: BackupPlace, keep: number, config: Config): Promise<void> => {
  const names = await place.names()
  const [kept, old] = [names.slice(-keep), names.slice(0, -keep)]
  for (const name of old) await place.remove(name)
  if (old.length > 0) print(`removed  ${old.length} older ${old.length === 1 ? 'backup' : 'backups'}`)
  const first = kept[0] && firstSegmentOf(kept[0])
  if (!first || config.ARCHIVE_TO === undefined) return
  const segments = await pruneArchive(config.ARCHIVE_TO, first)
  if (segments > 0) print(`removed  ${segments} segments of the archive`)
}

const makeIdentity = async (path: string): Promise<void> => {
  const identity = await generateX25519Identity()
  const recipient = await identityToRecipient(identity)
  await writeFile(path, `# recipient: ${recipient}\n${identity}\n`, { mode: 0o600, flag: 'wx', flush: true }).catch(
    (error: NodeJS.ErrnoException) => {
      throw new StartError(`${path} cannot be written: ${error.code}`)
    },
  )
  print(recipient)
}

const backUp = async (values: Values): Promise<void> => {
  if (typeof values['new-identity'] === 'string') return makeIdentity(values['new-identity'])
  if (values['project'] !== undefined) return backUpOne(String(values['project']), values)
  const config = readConfig({ LOG_LEVEL: 'warn', ...process.env })
  if (config.DATABASE_URL !== undefined)
    throw new StartError(
      'The databases are on the server of DATABASE_URL: it is backed up by its own tools (docs/backups.md says how). This command is for embedded Postgres, or, with --project ID, for one project.',
    )
  const to = textOf(values['to'], config.BACKUP_TO, 'Say where to: --to PLACE, or BACKUP_TO.')
  const keep = readKeep(values['keep'])
  const place = await backupPlace(to)
  const version = await ownVersion()
  const recipients = listOf(values['recipient'])
  const began = performance.now()
  const foundation = await startExistingPostgres(config, createLog(config))
  let writing: Writing | undefined
  try {
    const done = await backUpInstallation(foundation, {
      recipients,
      withoutKey: values['without-key'] === true,
      version,
      say: (line) => print(`copied   ${line}`),
      async begin(name) {
        writing = await place.write(name)
        return writing.sink
      },
    })
    const where = await writing?.done()
    writing = undefined
    print(`backup   ${where}`)
    print(`restores ${done.point.projects} projects as they were at ${done.point.at}`)
    if (done.hasKey && recipients.length === 0)
      print(
        'It holds secrets.key, and is not encrypted: whoever reads it reads everything. See --recipient and --without-key.',
      )
    if (config.STORAGE_URL !== undefined) print('Media are in the bucket of STORAGE_URL, and not in this backup.')
    if (keep !== undefined) await prune(place, keep, config)
    print(`done in ${((performance.now() - began) / 1000).toFixed(1)} s`)
  } finally {
    await writing?.abandon()
    await foundation.postgres.stop()
  }
}

type Values = Parameters<Parameters<typeof run>[2]>[0]

const backUpOne = async (projectId: string, values: Values): Promise<void> => {
  const config = readConfig({ LOG_LEVEL: 'warn', ...process.env })
  const to = textOf(values['to'], config.BACKUP_TO, 'Say where to: --to PLACE, or BACKUP_TO.')
  const keep = readKeep(values['keep'])
  const place = await backupPlace(to, checkProjectId(projectId))
  const began = performance.now()
  let writing: Writing | undefined
  await onControl(config, async ({ control, clusters, storage }) => {
    try {
      const { cluster, row } = await foundProject(control, clusters, projectId)
      const done = await backUpProject({
        cluster,
        database: row.database_name,
        control,
        project: row.project,
        schemaVersion: row.schema_version,
        storage,
        recipients: listOf(values['recipient']),
        version: await ownVersion(),
        say: (line) => print(`copied   ${line}`),
        async begin(name) {
          writing = await place.write(name)
          return writing.sink
        },
      })
      print(`backup   ${await writing?.done()}`)
      writing = undefined
      print(`restores project ${projectId} as it was at ${done.point.at}`)
    } finally {
      await writing?.abandon()
    }
  })
  if (keep !== undefined) await prune(place, keep, config)
  print(`done in ${((performance.now() - began) / 1000).toFixed(1)} s`)
}

await run(
  {
    project: { type: 'string' },
    to: { type: 'string' },
    recipient: { type: 'string', multiple: true },
    'new-identity': { type: 'string' },
    'without-key': { type: 'boolean' },
    keep: { type: 'string' },
  },
  usage,
  backUp,
)
