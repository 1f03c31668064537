/**
 * Resumable uploads by the protocol of tus.io, 1.0.0, with which Supabase's clients resume: core, creation (with the first bytes too) and termination. An
 * upload is the pending one of its file, which the database admits, and its parts lie in the storage. Its address says which one it is, and gives nobody
 * access: each request has the credentials of its caller.
 */
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { ApiError, refusal } from '#server/errors.ts'
import { projectIdOf } from '#server/http/project.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { commitArrived, isFree, linked, type Upload } from '#server/media/assets.ts'
import type { UploadLink } from '#server/media/links.ts'
import { cutOffSilence } from '#server/media/serve.ts'
import { mostBytes } from '#server/media/storage.ts'
import { invalid } from '#server/rest/auth_shapes.ts'
import { found, type Handler } from '#server/rest/storage/context.ts'
import { fileType, metadataOf, takePiece, tooLong } from '#server/rest/storage/received.ts'
import { inTurn } from '#server/rest/storage/upload.ts'

const version = '1.0.0'
/** It stands in the address of the upload, with what the app keeps with the file. */
const mostMetadata = 2048

const Place = z.strictObject({
  asset: z.uuid(),
  version: z.string().regex(/^[0-9a-z]{1,64}$/),
  bucket: z.string().max(100),
  key: z.string().max(1024),
  size: z.int().min(1).max(mostBytes),
  metadata: z.string().max(mostMetadata).optional(),
})
type Place = z.output<typeof Place>

const nothingThere = () => refusal(404, 'NOT_FOUND', 'There is no such upload.')

const placeOf = (id: string): Place => {
  try {
    return Place.parse(JSON.parse(Buffer.from(id, 'base64url').toString()))
  } catch {
    throw nothingThere()
  }
}

/** Every answer names the version, a refusal too. */
const begun: (handler: Handler) => Handler = (handler) => async (context, at, reply) => {
  reply.header('tus-resumable', version)
  if (context.request.headers['tus-resumable'] !== version) {
    reply.header('tus-version', version)
    throw refusal(412, 'INVALID_INPUT', `Tus-Resumable: must be ${version}`, { field: 'Tus-Resumable' })
  }
  return handler(context, at, reply)
}

const wholeNumber = (context: HandlerContext, name: string): number => {
  const sent = context.request.headers[name.toLowerCase()]
  if (typeof sent !== 'string' || !/^\d{1,15}$/.test(sent)) throw invalid(name, 'must be a whole number')
  return Number(sent)
}

/** `Upload-Metadata: <name> <Base64>, ...` */
const fieldsOf = (header: unknown): Readonly<Record<string, string>> =>
  Object.fromEntries(
    String(header ?? '')
      .split(',')
      .map((pair) => pair.trim().split(' '))
      .filter(([name]) => name)
      .map(([name, value = '']) => [name, Buffer.from(value, 'base64').toString()]),
  )

const linkOf = (context: HandlerContext, place: Place, upload: Upload): UploadLink => ({
  projectId: projectIdOf(context),
  key: upload.key,
  assetId: upload.asset_id,
  version: upload.version,
  mimeType: upload.mime_type,
  sizeBytes: place.size,
})

/** An upload that is under way, or null of one that has become the file. Refuses 404 for one that another took the place of. */
const openOf = async (context: HandlerContext, place: Place): Promise<Upload | null> => {
  const reply = await linked(context, 'media_lookup', { asset_id: place.asset, with_upload: true }, { readOnly: true })
  if (reply.status === 202) {
    const upload = dataOf<Upload>(reply)
    if (upload.version === place.version) return upload
  }
  const file = await found(context, place).catch((error: unknown) => {
    if (error instanceof ApiError && error.status < 500) return null
    throw error
  })
  if (file?.asset_id === place.asset && file.object === place.version) return null
  throw nothingThere()
}

/** Whether the upload becomes no file, however often its end is sent. */
const isFinal = ({ status }: ApiError) => status < 500 && status !== 429

/** Ends an upload, and removes what has come of it; but what has become the file stays. */
const end = async (context: HandlerContext, place: Place, upload: Upload): Promise<boolean> => {
  const { parts, storage } = context.services.media
  const link = linkOf(context, place, upload)
  const { asset_id, version } = upload
  if (!dataOf<boolean>(await context.call('media_upload_end', { asset_id, version }))) return false
  await parts.discard(link)
  await storage.removeObject({ projectId: link.projectId, assetId: asset_id, object: version })
  return true
}

/** Makes the file of what has come, unless the upload was given up, begun anew or deleted meanwhile: then nothing would count its bytes. */
const complete = async (context: HandlerContext, place: Place, upload: Upload): Promise<void> => {
  try {
    await commitArrived(context, upload, {
      is_free: isFree(context),
      metadata: place.metadata ? metadataOf(Buffer.from(place.metadata)) : {},
    })
    await openOf(context, place)
  } catch (error) {
    if (error instanceof ApiError && isFinal(error)) await end(context, place, upload)
    throw error
  }
}

/** Whether more is to come; false where another request was faster with the last part. What nothing counts any more is removed. */
const stillOpen = async (context: HandlerContext, place: Place, upload: Upload): Promise<boolean> => {
  const discard = () => context.services.media.parts.discard(linkOf(context, place, upload))
  const open = await openOf(context, place).catch(async (error: unknown) => {
    if (error instanceof ApiError && error.status < 500) await discard()
    throw error
  })
  if (!open) await discard()
  return open !== null
}

/** Up to where bytes have come. Of an upload that a crash has left whole this makes the file: its client sends nothing more. */
const reachedOf = async (context: HandlerContext, place: Place): Promise<{ to: number; upload: Upload | null }> => {
  const upload = await openOf(context, place)
  if (!upload) return { to: place.size, upload }
  const to = await context.services.media.parts.offset(linkOf(context, place, upload))
  if (to < place.size) return { to, upload }
  await complete(context, place, upload)
  return { to: place.size, upload: null }
}

/** Stores what has come of a body, however it ended, and answers up to where bytes reach. The last ones make the file. */
const take = async (context: HandlerContext, place: Place, upload: Upload, offset: number): Promise<number> => {
  const { services, request } = context
  const source = request.body as Readable | undefined
  if (!source) return offset
  const link = linkOf(context, place, upload)
  return inTurn(context, async () => {
    const stop = cutOffSilence(source)
    const piece = await takePiece(join(services.config.DATA_DIR, 'received'), source, place.size - offset).finally(stop)
    try {
      if (piece.size === 0) return offset
      const { parts } = services.media
      const to = await parts.receivePart(link, piece.read(), offset, offset + piece.size - 1, place.size)
      if (to >= place.size) await complete(context, place, upload)
      else if (!(await stillOpen(context, place, upload))) return place.size
      return to
    } finally {
      await piece.close()
    }
  })
}

const create: Handler = async (context, _at, reply) => {
  const { request, services } = context
  const size = wholeNumber(context, 'Upload-Length')
  if (size === 0) throw invalid('Upload-Length', 'must be at least 1')
  if (size > mostBytes) throw tooLong()
  const { bucketName = '', objectName = '', contentType = '', metadata } = fieldsOf(request.headers['upload-metadata'])
  if (/\0/.test(bucketName + objectName)) throw invalid('Upload-Metadata', 'has a character that cannot be stored')
  if (metadata) metadataOf(Buffer.from(metadata))
  if (metadata && metadata.length > mostMetadata)
    throw invalid('metadata', `of a resumable upload has more than ${mostMetadata} characters`)
  const upload = dataOf<Upload>(
    await context.call('media_begin', {
      bucket: bucketName,
      key: objectName,
      content_type: fileType(contentType),
      size_bytes: size,
      replaces: request.headers['x-upsert'] === 'true',
      is_free: isFree(context),
    }),
  )
  const place: Place = {
    asset: upload.asset_id,
    version: upload.version,
    bucket: bucketName,
    key: objectName,
    size,
    ...(metadata ? { metadata } : {}),
  }
  await services.media.parts.discardFormer(linkOf(context, place, upload))
  const id = Buffer.from(JSON.stringify(place)).toString('base64url')
  const offset = await take(context, place, upload, 0).catch(async (error: unknown) => {
    // nobody is told where it is
    await end(context, place, upload)
    throw error
  })
  return reply
    .status(201)
    .headers({
      location: `${services.publicUrl}/storage/v1/upload/resumable/${id}`,
      'upload-offset': offset,
      'upload-length': size,
    })
    .send('')
}

const append: Handler = async (context, { bucket: id }, reply) => {
  const place = placeOf(id)
  if (context.request.headers['content-type'] !== 'application/offset+octet-stream')
    throw refusal(415, 'UNSUPPORTED_MEDIA_TYPE', 'Content-Type: must be application/offset+octet-stream')
  const offset = wholeNumber(context, 'Upload-Offset')
  const { to: known, upload } = await reachedOf(context, place)
  if (offset !== known)
    throw refusal(409, 'CONFLICT', `Upload-Offset: must be ${known}, up to where bytes have come.`, { offset: known })
  const to = upload ? await take(context, place, upload, offset) : known
  return reply.status(204).header('upload-offset', to).send()
}

const where: Handler = async (context, { bucket: id }, reply) => {
  const place = placeOf(id)
  const { to } = await reachedOf(context, place)
  return reply.status(200).headers({ 'upload-offset': to, 'upload-length': place.size }).send('')
}

/** What has come goes; of a file that is to be replaced its bytes stay. */
const abandon: Handler = async (context, { bucket: id }, reply) => {
  const place = placeOf(id)
  const upload = await openOf(context, place)
  if (!upload) throw nothingThere()
  if (!(await end(context, place, upload))) throw nothingThere()
  return reply.status(204).send()
}

export const [createUpload, appendUpload, findUpload, abandonUpload] = [create, append, where, abandon].map(begun) as [
  Handler,
  Handler,
  Handler,
  Handler,
]
