import { type FileHandle, open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Entry } from '#fleet/backup/archive.ts'

type Put = (entry: Entry) => Promise<void>

const isGone = (error: unknown) => ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')
const orGone = <T>(work: Promise<T>): Promise<T | null> =>
  work.catch((error: unknown) => {
    if (isGone(error)) return null
    throw error
  })

/**
 * Exactly `size` bytes: a file that became shorter meanwhile is filled up with zeros, as Postgres' own base backups do; what it had is in the WAL, which is
 * replayed over it.
 */
const exactly = async function* (handle: FileHandle, size: number) {
  let left = size
  while (left > 0) {
    const buffer = Buffer.allocUnsafe(Math.min(left, 256 * 1024))
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, size - left)
    if (bytesRead === 0) buffer.fill(0)
    const chunk = bytesRead === 0 ? buffer : buffer.subarray(0, bytesRead)
    left -= chunk.length
    yield chunk
  }
}

/** A file as it is now; nothing when it is gone meanwhile. Answers its size. */
export const putFile = async (put: Put, path: string, name: string): Promise<number> => {
  const handle = await orGone(open(path))
  if (!handle) return 0
  try {
    const { size, mode } = await handle.stat()
    await put({ name, mode: mode & 0o777, type: 'file', size, body: exactly(handle, size) })
    return size
  } finally {
    await handle.close()
  }
}

/** Everything below a folder, the folder first; `leave` says by the path below it what is left out, with everything in it. */
export const putFolder = async (
  put: Put,
  folder: string,
  name: string,
  leave: (path: string, isFile: boolean) => 'none' | 'contents' | 'all' = () => 'none',
  path = '',
): Promise<number> => {
  const found = await orGone(stat(join(folder, path)))
  if (!found) return 0
  await put({ name: path ? `${name}/${path}` : name, mode: found.mode & 0o777, type: 'directory' })
  if (leave(path, false) === 'contents') return 0
  const entries = (await orGone(readdir(join(folder, path), { withFileTypes: true }))) ?? []
  let bytes = 0
  for (const entry of entries) {
    const below = path ? `${path}/${entry.name}` : entry.name
    if (leave(below, entry.isFile()) === 'all') continue
    if (entry.isDirectory()) bytes += await putFolder(put, folder, name, leave, below)
    else if (entry.isFile()) bytes += await putFile(put, join(folder, below), `${name}/${below}`)
  }
  return bytes
}

/** Folders of a cluster that Postgres fills anew, and needs. */
const emptied = new Set([
  'pg_wal',
  'pg_replslot',
  'pg_dynshmem',
  'pg_notify',
  'pg_serial',
  'pg_snapshots',
  'pg_stat_tmp',
  'pg_subtrans',
])
/** Those of the server that runs; and the copy of pg_control comes last. */
const left = new Set([
  'postmaster.pid',
  'postmaster.opts',
  'backup_label',
  'tablespace_map',
  'recovery.signal',
  'standby.signal',
  'global/pg_control',
])

/** What Postgres' own base backups leave out, of a cluster in use. */
export const leftOfCluster = (path: string): 'none' | 'contents' | 'all' => {
  if (emptied.has(path)) return 'contents'
  const name = path.split('/').at(-1) ?? ''
  if (left.has(path) || name.startsWith('pgsql_tmp') || /^pg_internal\.init(\.\d+)?$/.test(name)) return 'all'
  return 'none'
}
