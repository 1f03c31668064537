import { readdir, stat, statfs } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { StartError } from '#server/errors.ts'
import type { Run } from '../arguments.ts'
import { type Finding, fail, graded, ok, skip, warn } from './findings.ts'

const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`

/** With a Postgres of one's own DATA_DIR is made when something is stored in it: until then the folder in which it will be. */
const existing = async (folder: string): Promise<string> =>
  (await stat(folder).catch(() => null)) || dirname(folder) === folder ? folder : existing(dirname(folder))

const disk = async (folder: string): Promise<Finding> => {
  const { bavail, blocks, bsize } = await statfs(await existing(resolve(folder)))
  const free = bavail * bsize
  const found = `${gigabytes(free)} free of ${gigabytes(blocks * bsize)} where DATA_DIR is`
  const remedy = 'Free some space, or move DATA_DIR to a larger disk: Postgres stops when it cannot write.'
  if (free < 0.5e9) return fail('disk', found, remedy)
  if (free < 5e9 && bavail / blocks < 0.1) return warn('disk', found, remedy)
  return ok('disk', found)
}

/** Postgres' clock against this machine's: tokens, leases and schedules compare the two. */
const clock = async ({ control }: Run): Promise<Finding> => {
  const before = Date.now()
  const { rows } = await control.query<{ at: string }>('select extract(epoch from clock_timestamp()) * 1000 as at')
  const after = Date.now()
  const off = Math.max(0, before - Number(rows[0]?.at), Number(rows[0]?.at) - after) / 1000
  return graded(
    'clock',
    off,
    { failed: 5, warning: 1 },
    {
      found: `${off.toFixed(2)} s between this machine and Postgres`,
      remedy: 'Run a time service (chrony, systemd-timesyncd) on both machines.',
    },
  )
}

const key = async ({ foundation: { config } }: Run): Promise<Finding> => {
  if (config.SECRETS_KEY) return ok('key', 'SECRETS_KEY is given; keep a copy of it apart from the backups')
  const file = join(config.DATA_DIR, 'secrets.key')
  const found = await stat(file).catch(() => null)
  if (!found) throw new StartError(`there is no key, neither in SECRETS_KEY nor in ${file}`)
  if ((found.mode & 0o077) !== 0)
    return fail('key', `${file} can be read by others (mode ${(found.mode & 0o777).toString(8)})`, `chmod 600 ${file}`)
  return ok('key', `${file} belongs to one user; keep a copy of it apart from the backups`)
}

/** The newest file of the folder that backups are written to, when that is told. */
export const backups = async (folder: string | undefined, now: number): Promise<Finding> => {
  if (!folder)
    return skip('backups', 'say where they are to have them looked at: --backups FOLDER, or a folder in BACKUP_TO')
  const names = await readdir(folder, { recursive: true }).catch(() => null)
  const remedy = 'Run your backup and look at what it says; see docs/backups.md.'
  if (!names) return fail('backups', `there is no folder ${folder}`, remedy)
  const times = await Promise.all(
    names.map(async (name) => {
      const entry = await stat(join(folder, name)).catch(() => null)
      return entry?.isFile() && entry.size > 0 ? entry.mtimeMs : 0
    }),
  )
  const newest = times.reduce((most, time) => Math.max(most, time), 0)
  if (newest === 0) return fail('backups', `${folder} holds no file`, remedy)
  const hours = (now - newest) / 3_600_000
  return graded(
    'backups',
    hours,
    { failed: 168, warning: 36 },
    {
      found: `the newest file of ${folder} is ${hours.toFixed(0)} hours old`,
      remedy,
    },
  )
}

export const machineChecks = async (run: Run): Promise<Finding[]> =>
  Promise.all([clock(run), disk(run.foundation.config.DATA_DIR), key(run)])
