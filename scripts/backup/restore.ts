import { stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { readIdentities } from '#fleet/backup/archive.ts'
import { point, projectPoint } from '#fleet/backup/manifest.ts'
import { backupPlace } from '#fleet/backup/places.ts'
import { formerName, restoreProject } from '#fleet/backup/project_restore.ts'
import { checkBackup, restoreInstallation } from '#fleet/backup/restore.ts'
import { readConfig } from '#server/config.ts'
import { StartError } from '#server/errors.ts'
import { listOf, print, readText, run, textOf } from './command.ts'
import { checkProjectId, destinationOf, onControl } from './projects.ts'

const usage = `Usage: npm run restore -- --from PLACE [options]

Restores a backup into DATA_DIR, which must be empty; a secrets.key in it, or SECRETS_KEY, is kept.

  --from PLACE     a file, a folder or prefix (its newest backup is taken), or s3://KEY:SECRET@host/bucket/…; default: BACKUP_TO
  --identity FILE  identities of age that open an encrypted backup
  --at TIME        a later moment, in ISO 8601 with its zone, or "latest": replays the segments in the archive up to it
  --archive DIR    where those segments are, default: ARCHIVE_TO; may be given again, as for pg_wal of a server whose disk is left
  --check          reads the whole backup, compares its checksums, and restores nothing

Restores a backup of one project, while everything else is used:

  --project ID            in place: the project has the data of its backup; the former database is kept beside, closed
  --new-project NAME      as another project, with API keys of its own, paused
  --organization ID       to which the new project belongs; default: the one of the project that was backed up`

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

const sayChecked = async (source: Parameters<typeof checkBackup>[0], identities: readonly string[]): Promise<void> => {
  const { manifest, end } = await checkBackup(source, identities)
  const by = `by Trellis ${manifest.version}, Postgres ${manifest.postgres}`
  if (manifest.kind === 'project')
    print(`whole     project ${manifest.project.id} as of ${projectPoint.parse(end).at}, ${by}`)
  else {
    const { projects, at } = point.parse(end)
    print(`whole     ${projects} projects as of ${at}, ${by}`)
  }
}

const restore = async (values: Parameters<Parameters<typeof run>[2]>[0]): Promise<void> => {
  if (values['project'] !== undefined || values['new-project'] !== undefined) return restoreOne(values)
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
    if (values['check'] === true) return await sayChecked(source, identities)
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

const restoreOne = async (values: Parameters<Parameters<typeof run>[2]>[0]): Promise<void> => {
  const projectId = typeof values['project'] === 'string' ? checkProjectId(values['project']) : null
  const newName = typeof values['new-project'] === 'string' ? values['new-project'] : null
  if (projectId !== null && newName !== null) throw new StartError('Say --project ID, or --new-project NAME.')
  if (values['at'] !== undefined || values['archive'] !== undefined)
    throw new StartError('A backup of one project restores its own moment: --at and --archive are for installations.')
  const config = readConfig({ LOG_LEVEL: 'warn', ...process.env })
  const from = textOf(values['from'], config.BACKUP_TO, 'Say from where: --from PLACE, or BACKUP_TO.')
  const identities = values['identity'] ? readIdentities(await readText(String(values['identity']))) : []
  const began = performance.now()
  const place = await backupPlace(from, projectId)
  const { name, source } = await place.read()
  print(`reading   ${name}`)
  try {
    if (values['check'] === true) return await sayChecked(source, identities)
    await onControl(config, async (context) => {
      const organization = typeof values['organization'] === 'string' ? values['organization'] : null
      const target = destinationOf(context, projectId, newName ?? '', organization)
      const {
        to,
        point: end,
        isFormerKept,
      } = await restoreProject(source, {
        identities,
        secrets: context.secrets,
        program: context.program,
        template: context.template,
        storage: context.storage,
        ask: context.ask,
        say: (line) => print(`backup    ${line}`),
        temporary: tmpdir(),
        destination: target.find,
        register: target.register,
      })
      if (to.isInPlace) {
        print(`restored  project ${to.projectId} as it was at ${end.at}`)
        if (isFormerKept)
          print(`kept      what it had until now: database ${formerName(to.database)}. Drop it when you are sure.`)
      }
    })
    print(`done in ${((performance.now() - began) / 1000).toFixed(1)} s.`)
  } finally {
    source.destroy()
  }
}

await run(
  {
    project: { type: 'string' },
    'new-project': { type: 'string' },
    organization: { type: 'string' },
    from: { type: 'string' },
    identity: { type: 'string' },
    at: { type: 'string' },
    archive: { type: 'string', multiple: true },
    check: { type: 'boolean' },
  },
  usage,
  restore,
)
