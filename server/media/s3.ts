import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import type { _Object, S3Client } from '@aws-sdk/client-s3'
import { StartError } from '#server/errors.ts'
import type { PartStorage } from '#server/media/parts.ts'
import { createS3Parts } from '#server/media/s3_parts.ts'
import { type MediaStorage, type Name, type ReceivedUpload, type StoredName, versionOf } from '#server/media/storage.ts'

type S3Place = {
  readonly endpoint: string
  readonly bucket: string
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

/** `s3://KEY:SECRET@host/bucket?region=eu-central-1&tls=off&path=/s3`: the path is where the API begins on that host. */
export const readStorageUrl = (text: string, what = 'STORAGE_URL'): S3Place => {
  const url = URL.canParse(text) ? new URL(text) : null
  const bucket = url?.pathname.slice(1) ?? ''
  const tls = url?.searchParams.get('tls') ?? 'on'
  const path = url?.searchParams.get('path') ?? ''
  const isGood =
    url?.protocol === 's3:' &&
    url.username &&
    url.password &&
    /^[a-z0-9][a-z0-9.-]{1,62}$/.test(bucket) &&
    /^(on|off)$/.test(tls)
  if (!url || !isGood || !/^(\/[\w.-]+)*$/.test(path))
    throw new StartError(`${what} must be s3://KEY:SECRET@host/bucket, with ?region=, ?tls=off, ?path= where wanted`)
  return {
    endpoint: `${tls === 'off' ? 'http' : 'https'}://${url.host}${path}`,
    bucket,
    region: url.searchParams.get('region') ?? 'us-east-1',
    accessKeyId: decodeURIComponent(url.username),
    secretAccessKey: decodeURIComponent(url.password),
  }
}

/** How long a storage may be silent. */
const usualLimits = {
  /** Until it answers a request that moves no file. */
  answerMs: 60_000,
  /** In the middle of anything: a file that is sent, or copied, or read by somebody who pauses. */
  silenceMs: 300_000,
}
/** Of a request that sends or copies a file, which is answered when that is done. */
const untilDone = { requestTimeout: 0 }

/** The SDK has some hundred modules: only an installation that uses it loads them. */
const load = async () => ({
  ...(await import('@aws-sdk/client-s3')),
  ...(await import('@aws-sdk/s3-request-presigner')),
})

const isMissing = (error: unknown) =>
  (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode === 404

/**
 * Any S3 API. Uploads go to `<project>/uploads/<asset>/<version>` by URLs that the storage itself verifies: type, and where it is registered
 * the size, are signed. The commit copies them to `<project>/objects/<asset>/<version>`, so that an upload URL that is still valid changes
 * nothing any more.
 */
export const createS3Storage = (
  text: string,
  now: () => Date,
  limits = usualLimits,
): MediaStorage & { readonly parts: PartStorage } => {
  // with its retries, and however slowly an answer comes
  const bounded = () => ({ abortSignal: AbortSignal.timeout(2 * limits.answerMs) })
  const { bucket: Bucket, ...place } = readStorageUrl(text)
  let opened: Promise<{ s3: Awaited<ReturnType<typeof load>>; client: S3Client }> | undefined
  const open = async () => {
    const s3 = await load()
    const { accessKeyId, secretAccessKey, ...where } = place
    const client = new s3.S3Client({
      ...where,
      credentials: { accessKeyId, secretAccessKey },
      forcePathStyle: true,
      maxAttempts: 3,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: {
        connectionTimeout: 5_000,
        requestTimeout: limits.answerMs,
        socketTimeout: limits.silenceMs,
        // without it a request that is late is logged, and waited for
        throwOnRequestTimeout: true,
      },
    })
    return { s3, client }
  }
  const connected = () => {
    opened ??= open()
    return opened
  }

  const uploadKey = (of: { projectId: string; assetId: string; version: string }) =>
    `${of.projectId}/uploads/${of.assetId}/${of.version}`
  const objectKey = ({ projectId, assetId, object }: Name) => `${projectId}/objects/${assetId}/${object}`

  const head = async (Key: string) => {
    const { s3, client } = await connected()
    return client.send(new s3.HeadObjectCommand({ Bucket, Key }), bounded()).catch((error: unknown) => {
      if (isMissing(error)) return null
      throw error
    })
  }
  const listed = async function* (Prefix: string) {
    const { s3, client } = await connected()
    for (let token: string | undefined; ; ) {
      const part = await client.send(
        new s3.ListObjectsV2Command({ Bucket, Prefix, ...(token ? { ContinuationToken: token } : {}) }),
        bounded(),
      )
      yield part.Contents ?? []
      token = part.NextContinuationToken
      if (!part.IsTruncated || !token) return
    }
  }
  const removeKeys = async (keys: readonly string[]) => {
    if (keys.length === 0) return
    const { s3, client } = await connected()
    for (let from = 0; from < keys.length; from += 1000) {
      const Objects = keys.slice(from, from + 1000).map((Key) => ({ Key }))
      const { Errors = [] } = await client.send(
        new s3.DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } }),
        bounded(),
      )
      if (Errors[0]) throw new Error(`${Errors.length} objects could not be deleted: ${Errors[0].Code}`)
    }
  }
  const removePrefix = async (prefix: string) => {
    for await (const part of listed(prefix)) await removeKeys(keysOf(part))
  }
  const put = async (Key: string, Body: Readable, ContentLength: number, ContentType: string) => {
    const { s3, client } = await connected()
    await client.send(new s3.PutObjectCommand({ Bucket, Key, Body, ContentLength, ContentType }), untilDone)
  }
  const readAll = async (Key: string, Range?: string) => {
    const { s3, client } = await connected()
    const found = await client.send(new s3.GetObjectCommand({ Bucket, Key, ...(Range ? { Range } : {}) }))
    return found.Body as Readable
  }
  const namesBelow = async (prefix: string) => {
    const found: string[] = []
    for await (const part of listed(prefix)) found.push(...keysOf(part).map((key) => key.slice(prefix.length)))
    return found
  }
  const secondsTo = (at: Date) => Math.max(1, Math.floor((at.getTime() - now().getTime()) / 1000))

  return {
    endsUploads: false,
    parts: createS3Parts({
      list: namesBelow,
      size: async (key) => (await head(key))?.ContentLength ?? null,
      put,
      read: readAll,
      remove: removeKeys,
    }),
    async uploadUrl(upload, expiresAt) {
      const { s3, client } = await connected()
      const command = new s3.PutObjectCommand({
        Bucket,
        Key: uploadKey(upload),
        ContentType: upload.mimeType,
        ...(upload.sizeBytes === null ? {} : { ContentLength: upload.sizeBytes }),
      })
      const signableHeaders = new Set([
        'host',
        'content-type',
        ...(upload.sizeBytes === null ? [] : ['content-length']),
      ])
      return s3.getSignedUrl(client, command, { expiresIn: secondsTo(expiresAt), signingDate: now(), signableHeaders })
    },
    async downloadUrl(object, expiresAt, headers, isHead = false) {
      const { s3, client } = await connected()
      const wanted = {
        Bucket,
        Key: objectKey(object),
        ResponseContentType: headers.contentType,
        ResponseContentDisposition: headers.disposition,
        ResponseCacheControl: headers.cacheControl,
      }
      // the method is signed too
      const command = isHead ? new s3.HeadObjectCommand(wanted) : new s3.GetObjectCommand(wanted)
      return s3.getSignedUrl(client, command, { expiresIn: secondsTo(expiresAt), signingDate: now() })
    },
    async promote(upload, check): Promise<ReceivedUpload | null> {
      const [from, to] = [uploadKey(upload), objectKey({ ...upload, object: upload.version })]
      const arrived = await head(from)
      if (!arrived) {
        // an earlier run may have come so far
        const stored = await head(to)
        return stored ? { size: stored.ContentLength ?? 0, mimeType: stored.ContentType ?? null } : null
      }
      check({ size: arrived.ContentLength ?? 0, mimeType: arrived.ContentType ?? null })
      const { s3, client } = await connected()
      // what was looked at is what is copied
      const CopySource = `${Bucket}/${from}`
      await client.send(
        new s3.CopyObjectCommand({
          Bucket,
          Key: to,
          CopySource,
          ...(arrived.ETag ? { CopySourceIfMatch: arrived.ETag } : {}),
        }),
        untilDone,
      )
      const stored = await head(to)
      if (!stored) throw new Error('the storage does not have what it copied')
      await removeKeys([from])
      return { size: stored.ContentLength ?? 0, mimeType: stored.ContentType ?? null }
    },
    async stat(name) {
      const found = await head(objectKey(name))
      return found ? { size: found.ContentLength ?? 0, modifiedAt: found.LastModified ?? new Date(0) } : null
    },
    async read(name, start = 0, end) {
      return readAll(objectKey(name), start === 0 && end === undefined ? undefined : `bytes=${start}-${end ?? ''}`)
    },
    async write(name, file, mimeType) {
      await put(objectKey(name), createReadStream(file), (await stat(file)).size, mimeType)
    },
    async remove(projectId, assetId) {
      await removePrefix(`${projectId}/uploads/${assetId}/`)
      await removePrefix(`${projectId}/objects/${assetId}/`)
    },
    removeObject: (name) => removeKeys([objectKey(name)]),
    removeNames: (projectId, paths) => removeKeys(paths.map((path) => `${projectId}/${path}`)),
    removeVersion: (projectId, assetId, version) => removePrefix(objectKey({ projectId, assetId, object: version })),
    async derived(projectId, assetId) {
      return (await namesBelow(`${projectId}/objects/${assetId}/`)).filter((name) => name.includes('.'))
    },
    async *list(projectId) {
      for await (const part of listed(`${projectId}/`)) yield part.flatMap((object) => nameOf(projectId, object))
    },
    files: {
      async locations(projectId) {
        const { s3, client } = await connected()
        const found = await client.send(
          new s3.ListObjectsV2Command({ Bucket, Prefix: `${projectId}/`, MaxKeys: 1 }),
          bounded(),
        )
        return (found.Contents ?? []).length > 0 ? [{ kind: 'media', path: projectId }] : []
      },
      async purge(projectId, { path }) {
        // the path is read from the database: whatever its value, only the objects of this project may be deleted
        if (path !== projectId || !/^[0-9a-f-]{36}$/.test(path)) throw new Error('not the folder of this project')
        await removePrefix(`${path}/`)
      },
    },
    async close() {
      if (opened) (await opened).client.destroy()
    },
  }
}

const keysOf = (objects: readonly _Object[]) => objects.flatMap(({ Key }) => (Key ? [Key] : []))

const nameOf = (projectId: string, { Key = '', LastModified }: _Object): StoredName[] => {
  const path = Key.slice(projectId.length + 1)
  const [kind, assetId = '', name = ''] = path.split('/')
  const isUpload = kind === 'uploads'
  return isUpload || kind === 'objects'
    ? [{ path, assetId, version: versionOf(name), isUpload, modifiedAt: LastModified ?? new Date() }]
    : []
}
