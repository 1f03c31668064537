import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Writable } from 'node:stream'
import { PassThrough, type Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { StartError } from '#server/errors.ts'
import { readStorageUrl } from '#server/media/s3.ts'

/** Backups in a folder or a bucket are found again by their names: the moment, and the first segment of WAL that they need. */
const namePattern = /^trellis-(\d{8}T\d{6}Z)-([0-9A-F]{24})\.tar\.zst(\.age)?$/

export const nameOf = (at: Date, firstSegment: string, isEncrypted: boolean): string =>
  `trellis-${at.toISOString().replaceAll(/[-:]|\.\d+/g, '')}-${firstSegment}.tar.zst${isEncrypted ? '.age' : ''}`

/** Those of a project by its id, and the moment. */
export const projectNameOf = (at: Date, projectId: string, isEncrypted: boolean): string =>
  `trellis-project-${projectId}-${at.toISOString().replaceAll(/[-:]|\.\d+/g, '')}.tar.zst${isEncrypted ? '.age' : ''}`

const projectPattern = (projectId: string | null): RegExp =>
  new RegExp(`^trellis-project-${projectId ?? '[0-9a-f-]{36}'}-\\d{8}T\\d{6}Z\\.tar\\.zst(\\.age)?$`)

export const firstSegmentOf = (name: string): string | undefined => namePattern.exec(name)?.[2]

/** Something that is being written: it has its name when `done` resolves, and leaves nothing when it is abandoned. */
export type Writing = { readonly sink: Writable; done(): Promise<string>; abandon(): Promise<void> }

/** Where backups are kept: one file, a folder of them, or a prefix in a bucket. */
export type BackupPlace = {
  /** Begins to write. A place that is one file ignores the name. */
  write(name: string): Promise<Writing>
  /** The backup that a place names, or its newest one. */
  read(): Promise<{ readonly name: string; readonly source: Readable }>
  /** Names of backups here, oldest first; a place that is one file has none. */
  names(): Promise<string[]>
  remove(name: string): Promise<void>
}

const isMissing = (error: unknown) => (error as NodeJS.ErrnoException).code === 'ENOENT'

const syncFolder = async (folder: string) => {
  const handle = await open(folder)
  await handle.sync().finally(() => handle.close())
}

/** The name appears when all bytes are on the disk. */
const writeFileAt = async (path: string): Promise<Writing> => {
  const part = `${path}.part`
  await mkdir(dirname(path), { recursive: true })
  // two that write the same would mix
  const handle = await open(part, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
    throw new StartError(`${part} is there: another backup writes it, or one was killed. Then remove it.`)
  })
  const sink = createWriteStream('', { fd: handle.fd, autoClose: false })
  // what has failed is told by whoever writes
  sink.on('error', () => undefined)
  return {
    sink,
    async done() {
      await handle.sync()
      await handle.close()
      await rename(part, path)
      await syncFolder(dirname(path))
      return path
    },
    async abandon() {
      await handle.close().catch(() => undefined)
      await rm(part, { force: true })
    },
  }
}

/** Names that begin alike and end with a moment, or begin with it, are in the order of their moments. */
const sorted = (names: readonly string[], pattern: RegExp) => names.filter((name) => pattern.test(name)).sort()

const folderPlace = (folder: string, pattern: RegExp): BackupPlace => ({
  write: (name) => writeFileAt(join(folder, name)),
  async read() {
    const name = sorted(await readdir(folder), pattern).at(-1)
    if (!name) throw new StartError(`There is no backup in ${folder}.`)
    return { name, source: createReadStream(join(folder, name)) }
  },
  names: async () => sorted(await readdir(folder), pattern),
  remove: (name) => rm(join(folder, name)),
})

const filePlace = (path: string): BackupPlace => ({
  async write() {
    if (await stat(path).catch(() => null))
      throw new StartError(`${path} is there already: name another file, or a folder.`)
    return writeFileAt(path)
  },
  async read() {
    await stat(path).catch((error: unknown) => {
      throw isMissing(error) ? new StartError(`There is no ${path}.`) : error
    })
    return { name: basename(path), source: createReadStream(path) }
  },
  names: async () => [],
  remove: async () => undefined,
})

/** `s3://KEY:SECRET@host/bucket/prefix`, with what else STORAGE_URL may say; a key that ends like a backup is one file. */
const bucketPlace = async (text: string, pattern: RegExp): Promise<BackupPlace> => {
  const url = new URL(text)
  const [, bucket = '', ...rest] = url.pathname.split('/')
  const prefix = decodeURIComponent(rest.filter(Boolean).join('/'))
  url.pathname = `/${bucket}`
  const {
    bucket: Bucket,
    endpoint,
    region,
    accessKeyId,
    secretAccessKey,
  } = readStorageUrl(url.href, 'The address of the backup')
  const s3 = await import('@aws-sdk/client-s3')
  const { Upload } = await import('@aws-sdk/lib-storage')
  const client = new s3.S3Client({
    endpoint,
    region,
    credentials: { accessKeyId, secretAccessKey },
    forcePathStyle: true,
    maxAttempts: 5,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // a requestTimeout would be logged, and waited for
    requestHandler: { connectionTimeout: 10_000, socketTimeout: 300_000 },
  })
  const isOne = /\.tar\.zst(\.age)?$/.test(prefix)
  const keyOf = (name: string) => (isOne ? prefix : [prefix, name].filter(Boolean).join('/'))
  const names = async () => {
    const Prefix = prefix ? `${prefix}/` : ''
    const found: string[] = []
    for (let token: string | undefined; ; ) {
      const part = await client.send(
        new s3.ListObjectsV2Command({ Bucket, Prefix, ...(token ? { ContinuationToken: token } : {}) }),
      )
      for (const { Key = '' } of part.Contents ?? []) found.push(Key.slice(Prefix.length))
      token = part.NextContinuationToken
      if (!part.IsTruncated || !token) return sorted(found, pattern)
    }
  }
  return {
    async write(name) {
      const Body = new PassThrough()
      const Key = keyOf(name)
      const upload = new Upload({
        client,
        params: { Bucket, Key, Body, ContentType: 'application/octet-stream' },
        partSize: 16 * 1024 * 1024,
        queueSize: 2,
        leavePartsOnError: false,
      })
      const uploaded = upload.done()
      // ends the writer too, which waits for its sink
      uploaded.catch((error: Error) => Body.destroy(error))
      return {
        sink: Body,
        async done() {
          await uploaded
          return `s3://${new URL(endpoint).host}/${Bucket}/${Key}`
        },
        async abandon() {
          await upload.abort().catch(() => undefined)
          await uploaded.catch(() => undefined)
        },
      }
    },
    async read() {
      const name = isOne ? '' : (await names()).at(-1)
      if (name === undefined) throw new StartError(`There is no backup at ${Bucket}/${prefix}.`)
      const Key = keyOf(name)
      const found = await client.send(new s3.GetObjectCommand({ Bucket, Key })).catch((error: unknown) => {
        const status = (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode
        throw status === 404 ? new StartError(`There is no ${Key} in ${Bucket}.`) : error
      })
      return { name: Key.split('/').at(-1) ?? '', source: found.Body as Readable }
    },
    names: async () => (isOne ? [] : names()),
    async remove(name) {
      await client.send(new s3.DeleteObjectCommand({ Bucket, Key: keyOf(name) }))
    },
  }
}

/**
 * A file is what has a name of its own; a folder ends with a slash, or is there. In a folder or a prefix are backups of the installation, or those of one project, or with
 * null those of any.
 */
export const backupPlace = async (text: string, projectId?: string | null): Promise<BackupPlace> => {
  const pattern = projectId === undefined ? namePattern : projectPattern(projectId)
  if (/^s3:\/\//.test(text)) return bucketPlace(text, pattern)
  if (/^[a-z][a-z0-9+.-]*:\/\//.test(text))
    throw new StartError('A backup is a file, a folder, or s3://KEY:SECRET@host/bucket/prefix.')
  const found = await stat(text).catch(() => null)
  if (found?.isDirectory()) return folderPlace(text, pattern)
  if (!text.endsWith('/')) return filePlace(text)
  await mkdir(text, { recursive: true, mode: 0o700 })
  return folderPlace(text, pattern)
}

/** Resolves when a sink has taken everything. */
export const flushed = (sink: Writable): Promise<void> => finished(sink, { readable: false })
