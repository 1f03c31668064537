import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fetch } from 'undici'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { projectIdOf } from '#server/http/project.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { commitArrived, isFree, type Upload } from '#server/media/assets.ts'
import { cutOffSilence } from '#server/media/serve.ts'
import type { At, Handler } from '#server/rest/storage/context.ts'
import { metadataOf, type ReceivedFile, takeFile } from '#server/rest/storage/received.ts'

const putSeconds = 600
/** A user sends so many files at once. */
const mostAtOnce = 4

/** Files that a user sends at this moment. */
const sending = new Map<string, number>()

/** One user sends a few files, or parts of one, at once. */
export const inTurn = async <T>({ resolved }: Pick<HandlerContext, 'resolved'>, work: () => Promise<T>): Promise<T> => {
  const who = resolved.claims.userId ?? resolved.project?.projectId ?? ''
  const count = sending.get(who) ?? 0
  if (count >= mostAtOnce)
    throw refusal(429, 'RATE_LIMITED', `Send at most ${mostAtOnce} files at once.`, null, { 'Retry-After': '1' })
  sending.set(who, count + 1)
  try {
    return await work()
  } finally {
    const left = (sending.get(who) ?? 1) - 1
    if (left > 0) sending.set(who, left)
    else sending.delete(who)
  }
}

/** Takes a file from a stream onto the disk, and hands it on. */
export const receiving = <T>(
  context: Pick<HandlerContext, 'services' | 'resolved'>,
  type: string,
  source: Readable,
  use: (file: ReceivedFile) => Promise<T>,
): Promise<T> =>
  inTurn(context, async () => {
    const stop = cutOffSilence(source)
    let file: ReceivedFile | undefined
    try {
      file = await takeFile(join(context.services.config.DATA_DIR, 'received'), type, source)
      return await use(file)
    } finally {
      stop()
      await file?.close()
    }
  })

/** The file of a request, as it goes to a place that its caller may write to. */
export const takeUpload = (context: HandlerContext, at: At, replaces: boolean): Promise<string> => {
  const { headers, body } = context.request
  const given = headers['x-metadata']
  const metadata = typeof given === 'string' ? metadataOf(Buffer.from(given, 'base64')) : undefined
  return receiving(context, headers['content-type'] ?? '', body as Readable, (file) =>
    store(context, at, file, { replaces, metadata: metadata ?? file.metadata ?? {} }),
  )
}

export const upload: Handler = async (context, at, reply) => {
  const { method, headers } = context.request
  const id = await takeUpload(context, at, method === 'PUT' || headers['x-upsert'] === 'true')
  return reply.send({ Id: id, Key: `${at.bucket}/${at.key}` })
}

type Storing = { readonly replaces: boolean; readonly metadata: Record<string, unknown> }

/** Registers a file that has come, stores it, and commits it: what a client of our own routes does in three requests. */
export const store = async (
  context: HandlerContext,
  { bucket, key }: At,
  file: ReceivedFile,
  { replaces, metadata }: Storing,
): Promise<string> => {
  const { services } = context
  const is_free = isFree(context)
  const { uploads, storage } = services.media
  const opened = dataOf<Upload>(
    await context.call('media_presign', {
      bucket,
      key,
      method: 'PUT',
      content_type: file.mimeType,
      size_bytes: file.size,
      replaces,
      is_free,
      // the URL of another server's storage is used here and given to nobody: nobody has to wait until it has expired
      seconds: uploads ? putSeconds : 0,
    }),
  )
  const link = {
    projectId: projectIdOf(context),
    key: opened.key,
    assetId: opened.asset_id,
    version: opened.version,
    mimeType: opened.mime_type,
    sizeBytes: opened.size_bytes,
  }
  if (uploads) await uploads.receive(link, file.read())
  else await sendOn(await storage.uploadUrl(link, new Date(services.now().getTime() + putSeconds * 1000)), file)
  await commitArrived(context, opened, { is_free, metadata })
  return opened.asset_id
}

/** To a storage of another server, as a client would. */
const sendOn = async (url: string | null, file: ReceivedFile): Promise<void> => {
  const failed = () =>
    refusal(503, 'UPLOAD_UNVERIFIED', 'The storage did not take the file: send it again.', null, { 'Retry-After': '2' })
  const headers = { 'content-type': file.mimeType, 'content-length': String(file.size) }
  const answer = await fetch(url ?? '', { method: 'PUT', headers, body: file.read(), duplex: 'half' }).catch(() => null)
  await answer?.body?.cancel()
  if (!answer?.ok) throw failed()
}
