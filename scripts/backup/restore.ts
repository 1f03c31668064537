import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { readIdentities } from '#server/backup/archive.ts'
import { backupPlace } from '#server/backup/places.ts'
import { checkBackup, restoreInstallation } from '#server/backup/restore.ts'
import { readConfig } from '#server/config.ts'
import { StartError } from '#server/errors.ts'
import { listOf, print, readText, run, textOf } from './command.ts'

const usage = `Usage: npm run restore -- --from PLACE [options]

Restores a backup into DATA_DIR, which must be empty; a secrets.key in it, or SECRETS_KEY, is kept.

  --from PLACE     a file, a folder or prefix (its newest backup is taken), or s3://KEY:SECRET@host/bucket/…; default: BACKUP_TO
  --identity FILE  identities of age that open an encrypted backup
  --at TIME        a later moment, in ISO 8601 with its zone, or "latest": replays the segments in the archive up to it
  --archive DIR    where those segments are, default: ARCHIVE_TO; may be given again, as for pg_wal of a server whose disk is left
  --check          reads the whole backup, compares its checksums, and restores nothing`

const readUntil = (value: unknown): Date | 'latest' | null => {
  if (value === undefined) return null
  if (value === 'latest') return 'latest'
  const text = String(value)
  if (
    !/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/.test(text) ||
    Number.isNaN(Date.parse(text))
  )
    throw new StartError('--at is a moment such as 2026-11-30T14:05:00Z, with its zone, or "latest".')
  if (Date.parse(text) > Date.now()) throw new StartError('--at is a moment that has not come yet.')
  return new Date(text)
}

const isFolder = async (path: string) => (await stat(path).catch(() => null))?.isDirectory() === true

const archivesOf = async (given: readonly string[], kept: string | undefined): Promise<string[]> => {
  for (const folder of given)
    if (!(await isFolder(folder))) throw new StartError(`${folder}, which --archive names, is no folder.`)
  if (given.length > 0) return given.map((folder) => resolve(folder))
  return kept !== undefined && (await isFolder(kept)) ? [kept] : []
}

const restore = async (values: Parameters<Parameters<typeof run>[2]>[0]): Promise<void> => {
  const config = readConfig({ LOG_LEVEL: 'warn', ...process.env })
  const from = textOf(values['from'], config.BACKUP_TO, 'Say from where: --from PLACE, or BACKUP_TO.')
  const identities = values['identity'] ? readIdentities(await readText(String(values['identity']))) : []
  const until = readUntil(values['at'])
  const archives = await archivesOf(listOf(values['archive']), config.ARCHIVE_TO)
  if (until !== null && archives.length === 0)
    throw new StartError('A later moment needs the segments of the archive: --archive DIR, or ARCHIVE_TO.')
  const began = performance.now()
  const place = await backupPlace(from)
  const { name, source } = await place.read()
  print(`reading   ${name}`)
  try {
    if (values['check'] === true) {
      const { manifest, point } = await checkBackup(source, identities)
      print(
        `whole     ${point.projects} projects as of ${point.at}, by Trellis ${manifest.version}, Postgres ${manifest.postgres}`,
      )
      return
    }
    const say = (line: string) => print(`backup    ${line}`)
    const done = await restoreInstallation(source, config, { identities, until, archives, say })
    print(`restored  ${done.projects} projects as they were at ${done.at}, into ${config.DATA_DIR}`)
    if (!done.manifest.has_media) print('Media are in the bucket of STORAGE_URL, and not in this backup.')
    print(
      `done in ${((performance.now() - began) / 1000).toFixed(1)} s. Start it with npm start; read docs/backups.md first where the original still runs.`,
    )
  } finally {
    source.destroy()
  }
}

await run(
  {
    from: { type: 'string' },
    identity: { type: 'string' },
    at: { type: 'string' },
    archive: { type: 'string', multiple: true },
    check: { type: 'boolean' },
  },
  usage,
  restore,
)
