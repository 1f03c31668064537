import { z } from 'zod'
import { dataOf, type Reply } from '#server/database/database.ts'
import { ApiError, refusal } from '#server/errors.ts'
import { endUser, endUserOrServer } from '#server/http/callers.ts'
import { type Answer, area, type HandlerContext, type Route, route } from '#server/http/route.ts'
import { data, JsonObject, Limit, Offset, page, Text, Time, Uuid } from '#server/http/schemas.ts'
import type { Arrival } from '#server/media/storage.ts'
import { mostBytes } from '#server/media/storage.ts'

const Asset = z.strictObject({
  id: Uuid,
  key: z.string(),
  filename: z.string(),
  mime_type: z.string(),
  status: z.enum(['pending', 'committed']),
  storage_url: z.string(),
  thumbnail_url: z.string().nullable(),
  alt_text: z.string().nullable(),
  metadata: JsonObject,
  size_bytes: z.int().nullable(),
  folder_id: Uuid.nullable(),
  uploaded_by: Uuid.nullable(),
  created_at: Time,
  updated_at: Time,
})
const Registered = z.strictObject({
  data: z.strictObject({ id: Uuid, filename: z.string(), storage_url: z.string(), uploaded_by: Uuid.nullable() }),
  upload_url: z.string(),
  upload_url_expires_at: Time,
})
const Signed = z.strictObject({ url: z.string(), expires_at: Time, asset_id: Uuid.optional() })

const Size = z
  .int(`must be a whole number of 1 to ${mostBytes}`)
  .min(1, `must be a whole number of 1 to ${mostBytes}`)
  .max(mostBytes, `must be a whole number of 1 to ${mostBytes}`)
const NewUpload = z.object({
  filename: Text(255, 1),
  mime_type: Text(127, 1),
  size_bytes: Size.optional(),
})
const assetId = { assetId: Uuid }
const notFound = { 404: ['NOT_FOUND'] }

/** How long an upload URL lives unless the request says otherwise. */
const uploadSeconds = 600
const downloadSeconds = 3600
const mostSeconds = { PUT: 3600, GET: 86_400 }

const projectOf = ({ resolved }: HandlerContext): string => resolved.project?.projectId ?? ''
const isFree = ({ resolved }: HandlerContext): boolean => resolved.project?.effectiveTier === 'free'

/** A call whose answer has links: SQL leaves their places, and this signs URLs for them. */
const linked = async (
  context: HandlerContext,
  name: string,
  args: Record<string, unknown>,
  settings: { readOnly?: boolean } = {},
): Promise<Reply> => {
  const { links } = context.services.media
  const nonce = links.nonce()
  const reply = await context.call(name, { ...args, nonce }, settings)
  return { ...reply, body: links.render(reply.body, nonce, projectOf(context)) }
}

/** What SQL says of an open upload. */
type Upload = {
  readonly asset_id: string
  readonly key: string
  readonly version: string
  readonly mime_type: string
  readonly size_bytes: number | null
  readonly expires_at: string
  readonly former: string | null
}

const uploadUrl = async (context: HandlerContext, upload: Upload): Promise<string> => {
  const { storage, links } = context.services.media
  const link = {
    projectId: projectOf(context),
    key: upload.key,
    assetId: upload.asset_id,
    version: upload.version,
    mimeType: upload.mime_type,
    sizeBytes: upload.size_bytes,
  }
  const expiresAt = new Date(upload.expires_at)
  return storage.uploadUrl(link, expiresAt) ?? links.upload(link, expiresAt)
}

const register = async (context: HandlerContext): Promise<Answer> => {
  const reply = await linked(context, 'media_upload', {
    ...context.body,
    is_free: isFree(context),
    seconds: uploadSeconds,
  })
  const { asset, upload } = dataOf<{ asset: object; upload: Upload }>(reply)
  const body = { data: asset, upload_url: await uploadUrl(context, upload), upload_url_expires_at: upload.expires_at }
  return { status: 201, body: JSON.stringify(body) }
}

type Signable = { asset_id: string; key: string; object: string; mime_type: string; expires_at: string }

const presign = async (context: HandlerContext): Promise<Answer> => {
  const { bucket, key, method, content_type, expires_in_seconds } = context.body as Record<string, string> & {
    expires_in_seconds?: number
  }
  const isPut = method === 'PUT'
  const most = isPut ? mostSeconds.PUT : mostSeconds.GET
  const seconds = Math.min(expires_in_seconds ?? (isPut ? uploadSeconds : downloadSeconds), most)
  const reply = await context.call('media_presign', {
    bucket,
    key,
    method,
    content_type,
    is_free: isFree(context),
    seconds,
  })
  if (isPut) {
    const upload = dataOf<Upload>(reply)
    const url = await uploadUrl(context, upload)
    return {
      status: 200,
      body: JSON.stringify({ data: { url, expires_at: upload.expires_at, asset_id: upload.asset_id } }),
    }
  }
  const found = dataOf<Signable>(reply)
  const url = context.services.media.links.download(
    {
      projectId: projectOf(context),
      key: found.key,
      assetId: found.asset_id,
      object: found.object,
      mimeType: found.mime_type,
      variant: null,
    },
    new Date(found.expires_at),
  )
  return { status: 200, body: JSON.stringify({ data: { url, expires_at: found.expires_at } }) }
}

const mismatch = (reason: string) =>
  refusal(400, 'INVALID_INPUT', `The file that was uploaded ${reason}.`, { field: 'asset_id', reason })

/** What arrived must be what was registered. */
const checkArrival =
  ({ size_bytes, mime_type }: Upload) =>
  ({ size, mimeType }: Arrival) => {
    if (size === 0) throw notUploaded()
    if (size > mostBytes) throw mismatch('has more than 50 MB')
    if (size_bytes !== null && size !== size_bytes) throw mismatch(`has ${size} bytes and not ${size_bytes}`)
    if (mimeType !== null && mimeType.toLowerCase() !== mime_type) throw mismatch(`is ${mimeType} and not ${mime_type}`)
  }

const notUploaded = () => refusal(409, 'UPLOAD_NOT_FOUND', 'The file has not been uploaded.')

/** Commits what has arrived; null when nothing has. */
const commitArrived = async (context: HandlerContext, upload: Upload): Promise<Reply | null> => {
  const { storage } = context.services.media
  const check = checkArrival(upload)
  const version = { projectId: projectOf(context), assetId: upload.asset_id, version: upload.version }
  const arrived = await storage.promote(version, check).catch((error: Error) => {
    if (error instanceof ApiError) throw error
    context.services.log.warn({ asset: upload.asset_id, error: error.message }, 'an upload could not be verified')
    throw refusal(503, 'UPLOAD_UNVERIFIED', 'The upload could not be verified: commit again.', null, {
      'Retry-After': '2',
    })
  })
  if (!arrived) return null
  check(arrived)
  const reply = await linked(
    context,
    'media_commit',
    {
      asset_id: upload.asset_id,
      version: upload.version,
      size_bytes: arrived.size,
      keeps_window: !storage.endsUploads,
    },
    { readOnly: false },
  )
  if (upload.former !== null) {
    // what remains is found by the daily cleanup
    await storage
      .removeVersion(version.projectId, upload.asset_id, upload.former)
      .catch((error: Error) => context.services.log.warn({ error: error.message }, 'replaced bytes stay for now'))
  }
  return reply
}

const commit = async (context: HandlerContext): Promise<Answer> => {
  const { asset_id, upload_id } = context.body as { asset_id: string; upload_id: string }
  if (asset_id.toLowerCase() !== upload_id.toLowerCase())
    throw refusal(400, 'INVALID_INPUT', 'upload_id: must be equal to asset_id', {
      field: 'upload_id',
      reason: 'must be equal to asset_id',
    })
  const found = await linked(context, 'media_lookup', { asset_id, with_upload: true })
  if (found.status === 200) return found
  const upload = dataOf<Upload>(found)
  const committed = await commitArrived(context, upload)
  if (committed) return committed
  // nothing came to replace it
  if (upload.former !== null) return linked(context, 'media_lookup', { asset_id })
  throw notUploaded()
}

/** An asset; one that is pending is committed when its file has arrived. */
const get = async (context: HandlerContext): Promise<Answer> => {
  const asset_id = context.params['assetId']
  const found = await linked(context, 'media_lookup', { asset_id })
  if (found.status === 200) return found
  const committed = await commitArrived(context, dataOf<Upload>(found)).catch((error: unknown) => {
    // a file that is not as registered is committed by nobody
    if (error instanceof ApiError && error.status < 500) return null
    throw error
  })
  if (committed) return committed
  throw refusal(404, 'NOT_FOUND', 'There is no such asset.')
}

/** The bytes are gone before the answer. */
const remove = async (context: HandlerContext): Promise<Answer> => {
  const { storage } = context.services.media
  const reply = await context.call('media_delete', { asset_id: context.params['assetId'], is_free: isFree(context) })
  const { id } = dataOf<{ id: string }>(reply)
  await storage.remove(projectOf(context), id)
  await context.call('media_removed', { asset_ids: [id] })
  return reply
}

export const media = area({
  stem: 'media',
  title: 'Media',
  source: 'contract',
  invalid: 'INVALID_INPUT',
  invalidBody: 'INVALID_BODY',
  routes: [
    route('GET /client/media', {
      caller: endUserOrServer,
      summary: "The caller's files, newest first; all files for a server key without a user",
      query: { limit: Limit(), offset: Offset, folder_id: Uuid.optional() },
      handle: (context) => {
        const { limit, offset, folder_id } = context.query
        return linked(context, 'media_list', { folder_id, page_limit: limit, page_offset: offset })
      },
      replies: { 200: page(Asset) },
      failure: 'LIST_FAILED',
    }),
    route('POST /client/media/upload', {
      caller: endUser,
      summary: 'Register an upload',
      description:
        'PUT the bytes to `upload_url` with the registered type as `Content-Type` and without credentials, then commit. Free projects must send `size_bytes`.',
      body: NewUpload,
      example: { filename: 'photo.png', mime_type: 'image/png', size_bytes: 48213 },
      handle: register,
      replies: { 201: Registered },
      refusals: { 400: ['MIME_NOT_ALLOWED', 'SIZE_REQUIRED'], 402: ['FREE_TIER_LIMIT_REACHED'] },
      failure: 'CREATE_FAILED',
    }),
    route('POST /client/media/presign', {
      caller: endUserOrServer,
      summary: 'Sign a URL to download or upload a file by its key',
      description:
        'Keys begin with `user/<user id>/`. PUT is for projects that are not free; the same key again is the same asset, whose bytes the next commit replaces. `expires_in_seconds` is at most 3600 for PUT and 86400 for GET.',
      body: z.object({
        bucket: Text(64, 1),
        key: Text(1100, 1),
        method: Text(16, 1),
        content_type: Text(127, 1).optional(),
        expires_in_seconds: z
          .int('must be a whole number of at least 1')
          .min(1, 'must be a whole number of at least 1')
          .optional(),
      }),
      example: { bucket: 'media', key: 'user/00000000-0000-4000-8000-000000000000/photo.png', method: 'GET' },
      handle: presign,
      replies: { 200: data(Signed) },
      refusals: {
        400: ['INVALID_METHOD', 'MIME_NOT_ALLOWED', 'PRESIGN_PUT_NOT_AVAILABLE'],
        403: ['FORBIDDEN'],
        404: ['NOT_FOUND', 'BUCKET_NOT_FOUND'],
        409: ['KEY_IN_USE'],
      },
      failure: 'CREATE_FAILED',
    }),
    route('POST /client/media/commit', {
      caller: endUserOrServer,
      summary: 'Commit an upload that has arrived; again is the same',
      body: z.object({ upload_id: Uuid, asset_id: Uuid }),
      example: {
        upload_id: '00000000-0000-4000-8000-000000000000',
        asset_id: '00000000-0000-4000-8000-000000000000',
      },
      handle: commit,
      replies: { 200: data(Asset) },
      refusals: { ...notFound, 409: ['UPLOAD_NOT_FOUND'], 503: ['UPLOAD_UNVERIFIED'] },
      failure: 'UPDATE_FAILED',
    }),
    route('GET /client/media/:assetId', {
      caller: endUserOrServer,
      summary: 'A file of the caller',
      description: 'A pending file that has arrived is committed by this.',
      params: assetId,
      handle: get,
      replies: { 200: data(Asset) },
      refusals: { ...notFound, 503: ['UPLOAD_UNVERIFIED'] },
      failure: 'FETCH_FAILED',
    }),
    route('DELETE /client/media/:assetId', {
      caller: endUserOrServer,
      summary: 'Delete a file of the caller: its bytes are gone before the answer',
      params: assetId,
      handle: remove,
      replies: { 200: data(z.strictObject({ id: Uuid, deleted: z.literal(true) })) },
      refusals: { ...notFound, 409: ['UPLOAD_WINDOW_OPEN', 'ASSET_IN_USE'] },
      failure: 'DELETE_FAILED',
    }),
  ] satisfies Route[],
})
