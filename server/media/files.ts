import { randomBytes } from 'node:crypto'
import { type FileHandle, link, mkdir, open, opendir, readdir, rename, rm, stat, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { refusal } from '#server/errors.ts'
import { appendFile, storeBytes } from '#server/media/bytes.ts'
import type { UploadLink } from '#server/media/links.ts'
import { checkPart, type Part, type PartStorage, partName, partsAmong, reached, refused } from '#server/media/parts.ts'
import { type MediaStorage, mostBytes, type Name, type StoredName, versionOf } from '#server/media/storage.ts'
import { createProjectFiles } from '#server/providers/project_files.ts'

/** Files take uploads themselves: whole ones, and parts of one. */
export type FileStorage = MediaStorage &
  PartStorage & {
    /** Stores an upload that came whole. Refuses a size that is not the registered one, and more than 50 MB. */
    receive(upload: UploadLink, source: Readable): Promise<number>
    /** The size of an upload that is whole; null while bytes are missing. Makes it of its parts where all have come and a crash was faster. */
    finish(upload: UploadLink, total: number): Promise<number | null>
    /** An object, to be sent by this server. Whoever opens it closes it. */
    open(name: Name): Promise<FileHandle>
  }

type Version = { readonly projectId: string; readonly assetId: string; readonly version: string }

const isMissing = (error: unknown) => ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')
const ignoreMissing = (error: unknown) => {
  if (!isMissing(error)) throw error
}
const ids = /^[0-9a-f-]{36}$/
const names = /^[0-9a-z][0-9a-z._-]{0,120}$/

const tooLong = (most: number) => () => refused(`has more than ${most} bytes`)

/** A signed URL is a licence for one file: it must not fill the disk with temporary ones. */
const mostAtOnce = 4

/** A part that comes meanwhile may make a file in it: then again. */
const removeFolder = (path: string) => rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 })

/** A name survives a crash when its folder has been written too. */
const syncFolder = async (folder: string) => {
  const handle = await open(folder)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/**
 * Files under DATA_DIR/media: `<project>/uploads/<asset>/<version>` until the commit, then `<project>/objects/<aa>/<asset>/<version>`. A file
 * is written under a temporary name, synced, and renamed: a name stands for whole bytes, whatever crashes.
 */
export const createFileStorage = (folder: string): FileStorage => {
  const at = (projectId: string, ...parts: readonly string[]) => {
    if (!ids.test(projectId) || parts.some((part) => !names.test(part))) throw new Error('not a name of stored bytes')
    return join(folder, projectId, ...parts)
  }
  const uploadsOf = (projectId: string, assetId: string) => at(projectId, 'uploads', assetId)
  const objectsOf = (projectId: string, assetId: string) => at(projectId, 'objects', assetId.slice(-2), assetId)
  const uploadAt = ({ projectId, assetId, version }: Version) => at(projectId, 'uploads', assetId, version)
  const objectAt = ({ projectId, assetId, object }: Name) =>
    at(projectId, 'objects', assetId.slice(-2), assetId, object)

  /** Fills a temporary file beside `target` and gives it that name. */
  const placed = async (target: string, fill: (file: FileHandle) => Promise<void>) => {
    await mkdir(dirname(target), { recursive: true })
    const temporary = `${target}.${randomBytes(6).toString('hex')}.tmp`
    try {
      const file = await open(temporary, 'wx')
      try {
        await fill(file)
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(temporary, target)
      await syncFolder(dirname(target))
    } catch (error) {
      await unlink(temporary).catch(() => undefined)
      throw error
    }
  }

  const sizeOf = async (path: string) => {
    const found = await stat(path).catch((error) => ignoreMissing(error))
    return found?.size ?? null
  }

  /** Parts that came, by where they begin. */
  const partsOf = async (upload: Version): Promise<readonly Part[]> => {
    const found = await readdir(dirname(uploadAt(upload))).catch((error) => {
      ignoreMissing(error)
      return []
    })
    return partsAmong(found, upload.version)
  }

  const assemble = async (upload: Version, parts: readonly Part[], total: number) => {
    const target = uploadAt(upload)
    await placed(target, async (file) => {
      let to = 0
      for (const { name, start, end } of parts) {
        if (end < to) continue
        const part = await open(join(dirname(target), name))
        try {
          await appendFile(file, part, to - start)
        } finally {
          await part.close()
        }
        to = end + 1
      }
      if ((await file.stat()).size !== total) throw new Error('the parts of an upload do not make its whole')
    })
    for (const { name } of parts) await unlink(join(dirname(target), name)).catch(ignoreMissing)
  }

  const finish: FileStorage['finish'] = async (upload, total) => {
    const target = uploadAt(upload)
    const whole = await sizeOf(target)
    if (whole !== null) return whole
    const parts = await partsOf(upload)
    if (reached(parts) !== total) return null
    // of two last parts at once, the parts of the slower one go when the faster one has made the whole
    await assemble(upload, parts, total).catch(ignoreMissing)
    return sizeOf(target)
  }

  const receiving = new Map<string, number>()
  /** Few requests of one upload store bytes at once. One that has ended without a word counts until its silence is noticed. */
  const inTurn = async <T>({ assetId, version }: Version, store: () => Promise<T>): Promise<T> => {
    const name = `${assetId} ${version}`
    const others = receiving.get(name) ?? 0
    if (others >= mostAtOnce)
      throw refusal(429, 'RATE_LIMITED', `At most ${mostAtOnce} requests upload one file at once.`, null, {
        'Retry-After': '5',
        Connection: 'close',
      })
    receiving.set(name, others + 1)
    try {
      return await store()
    } finally {
      const left = (receiving.get(name) ?? 1) - 1
      if (left > 0) receiving.set(name, left)
      else receiving.delete(name)
    }
  }

  const receivePart: FileStorage['receivePart'] = async (upload, source, start, end, total) => {
    const before = await partsOf(upload)
    const known = reached(before)
    checkPart(before, total)
    // bytes that came before are not stored a second time
    const from = Math.max(start, known)
    const most = end - start + 1
    // with the size of the whole, which nothing else knows where none was registered
    const target = join(dirname(uploadAt(upload)), partName(upload.version, from, end, total))
    await placed(target, async (file) => {
      const size = await storeBytes(file, source, { skip: from - start, most, tooLong: tooLong(most) })
      if (size !== most) throw refused(`must have the ${most} bytes of its Content-Range`)
    }).catch((error: unknown) => {
      // its folder went: the upload was completed or given up by another request
      if (isMissing(error)) throw refusal(409, 'CONFLICT', 'Another request has just ended this upload.')
      throw error
    })
    return (await finish(upload, total)) ?? reached(await partsOf(upload))
  }

  const receive: FileStorage['receive'] = async (upload, source) => {
    const most = upload.sizeBytes ?? mostBytes
    let size = 0
    await placed(uploadAt(upload), async (file) => {
      size = await storeBytes(file, source, { most, tooLong: tooLong(most) })
      if (size === 0) throw refused('is empty')
      if (upload.sizeBytes !== null && size !== upload.sizeBytes)
        throw refused(`must have ${upload.sizeBytes} bytes, not ${size}`)
    })
    return size
  }

  const storage: FileStorage = {
    endsUploads: true,
    uploadUrl: () => null,
    downloadUrl: () => null,
    receive: (upload, source) => inTurn(upload, () => receive(upload, source)),
    receivePart: (upload, source, start, end, total) =>
      inTurn(upload, () => receivePart(upload, source, start, end, total)),
    async offset(upload) {
      const parts = await partsOf(upload)
      const total = upload.sizeBytes ?? parts[0]?.total
      const whole = total === undefined ? await sizeOf(uploadAt(upload)) : await finish(upload, total)
      return whole ?? reached(await partsOf(upload))
    },
    finish,
    async discard(upload) {
      const folder = dirname(uploadAt(upload))
      for (const { name } of await partsOf(upload)) await unlink(join(folder, name)).catch(ignoreMissing)
      await unlink(uploadAt(upload)).catch(ignoreMissing)
    },
    async discardFormer(upload) {
      const folder = dirname(uploadAt(upload))
      const found = await readdir(folder).catch((error) => {
        ignoreMissing(error)
        return []
      })
      // what is being written has a name of its own until it is whole
      for (const name of found.filter((name) => versionOf(name) !== upload.version && !name.endsWith('.tmp')))
        await unlink(join(folder, name)).catch(ignoreMissing)
    },
    async promote(upload, check) {
      const [from, to] = [uploadAt(upload), objectAt({ ...upload, object: upload.version })]
      const arrived = (await sizeOf(from)) ?? (await sizeOf(to))
      if (arrived === null) return null
      check({ size: arrived, mimeType: null })
      await mkdir(dirname(to), { recursive: true })
      // of two commits at once, and of uploads between them, the first decides what the object is
      await link(from, to).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') ignoreMissing(error)
      })
      const size = await sizeOf(to)
      if (size === null) return null
      await syncFolder(dirname(to))
      await removeFolder(uploadsOf(upload.projectId, upload.assetId))
      return { size, mimeType: null }
    },
    async stat(name) {
      const found = await stat(objectAt(name)).catch((error) => ignoreMissing(error))
      return found ? { size: found.size, modifiedAt: found.mtime } : null
    },
    open: (name) => open(objectAt(name)),
    async read(name, start = 0, end) {
      const handle = await open(objectAt(name))
      return handle.createReadStream({ start, highWaterMark: 1 << 18, ...(end === undefined ? {} : { end }) })
    },
    async write(name, file) {
      const from = await open(file)
      try {
        await placed(objectAt(name), (to) => appendFile(to, from, 0))
      } finally {
        await from.close()
      }
    },
    async remove(projectId, assetId) {
      await removeFolder(uploadsOf(projectId, assetId))
      await removeFolder(objectsOf(projectId, assetId))
    },
    removeObject: (name) => unlink(objectAt(name)).catch(ignoreMissing),
    async removeNames(projectId, paths) {
      for (const path of paths) {
        await unlink(at(projectId, ...path.split('/'))).catch(ignoreMissing)
      }
    },
    async removeVersion(projectId, assetId, version) {
      const found = await readdir(objectsOf(projectId, assetId)).catch((error) => {
        ignoreMissing(error)
        return []
      })
      for (const object of found.filter((name) => versionOf(name) === version))
        await unlink(objectAt({ projectId, assetId, object })).catch(ignoreMissing)
    },
    async derived(projectId, assetId) {
      const found = await readdir(objectsOf(projectId, assetId)).catch((error) => {
        ignoreMissing(error)
        return []
      })
      return found.filter((name) => name.includes('.') && !name.endsWith('.tmp'))
    },
    async *list(projectId) {
      let part: StoredName[] = []
      for await (const { path, assetId, name, isUpload } of walk(at(projectId))) {
        const found = await stat(join(at(projectId), path)).catch((error) => ignoreMissing(error))
        if (found) part.push({ path, assetId, version: versionOf(name), isUpload, modifiedAt: found.mtime })
        if (part.length < 500) continue
        yield part
        part = []
      }
      if (part.length > 0) yield part
    },
    files: createProjectFiles(folder),
    close: async () => undefined,
  }
  return storage
}

const entriesOf = async function* (folder: string) {
  const entries = await opendir(folder).catch((error) => ignoreMissing(error))
  if (!entries) return
  for await (const entry of entries) yield entry.name
}

/** All files of a project, one after the other; what goes meanwhile is passed over. */
const walk = async function* (folder: string) {
  for await (const assetId of entriesOf(join(folder, 'uploads')))
    for await (const name of entriesOf(join(folder, 'uploads', assetId)))
      yield { path: `uploads/${assetId}/${name}`, assetId, name, isUpload: true }
  for await (const bucket of entriesOf(join(folder, 'objects')))
    for await (const assetId of entriesOf(join(folder, 'objects', bucket)))
      for await (const name of entriesOf(join(folder, 'objects', bucket, assetId)))
        yield { path: `objects/${bucket}/${assetId}/${name}`, assetId, name, isUpload: false }
}
