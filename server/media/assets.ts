/** Uploads and files as the API answers them: registered, signed, committed, removed. */
import { createHash } from 'node:crypto'
import { dataOf, type Reply } from '#server/database/database.ts'
import { ApiError, refusal } from '#server/errors.ts'
import { isKnown } from '#server/http/conditional.ts'
import { projectIdOf } from '#server/http/project.ts'
import type { Answer, HandlerContext } from '#server/http/route.ts'
import { mostBytes, type ReceivedUpload } from '#server/media/storage.ts'
import { type Variant, variantText } from '#server/media/variants.ts'

/** How long an upload URL lives unless the request says otherwise. */
const uploadSeconds = 600
const downloadSeconds = 3600
const mostSeconds = { PUT: 3600, GET: 86_400 }

export const isFree = ({ resolved }: HandlerContext): boolean => resolved.project?.effectiveTier === 'free'

/** A call whose answer has links: SQL leaves their places, and this signs URLs for them. */
export const linked = async (
  context: HandlerContext,
  name: string,
  args: Record<string, unknown>,
  settings: { readOnly?: boolean } = {},
): Promise<Reply> => {
  const { links } = context.services.media
  const nonce = links.nonce()
  const reply = await context.call(name, { ...args, nonce }, settings)
  return { ...reply, body: links.render(reply.body, nonce, projectIdOf(context)) }
}

/** What SQL says of an open upload. */
export type Upload = {
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
    projectId: projectIdOf(context),
    key: upload.key,
    assetId: upload.asset_id,
    version: upload.version,
    mimeType: upload.mime_type,
    sizeBytes: upload.size_bytes,
  }
  const expiresAt = new Date(upload.expires_at)
  return storage.uploadUrl(link, expiresAt) ?? links.upload(link, expiresAt)
}

export const register = async (context: HandlerContext): Promise<Answer> => {
  const reply = await linked(context, 'media_upload', {
    ...context.body,
    is_free: isFree(context),
    seconds: uploadSeconds,
  })
  const { asset, upload } = dataOf<{ asset: object; upload: Upload }>(reply)
  const body = { data: asset, upload_url: await uploadUrl(context, upload), upload_url_expires_at: upload.expires_at }
  return { status: 201, body: JSON.stringify(body) }
}

export type Signable = {
  asset_id: string
  key: string
  object: string
  mime_type: string
  filename: string
  expires_at: string
}

export const presign = async (context: HandlerContext): Promise<Answer> => {
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
  const { w, h, fit, format } = context.body as Variant
  const isChanged = [w, h, fit, format].some((part) => part !== undefined)
  if (isChanged && !found.mime_type.startsWith('image/'))
    throw refusal(400, 'INVALID_INPUT', 'w: only images are changed', { field: 'w', reason: 'only images are changed' })
  const variant = isChanged ? variantText(context.body as Variant) : null
  const url = context.services.media.links.download(
    {
      projectId: projectIdOf(context),
      key: found.key,
      assetId: found.asset_id,
      object: found.object,
      mimeType: found.mime_type,
      filename: found.filename,
      variant,
    },
    new Date(found.expires_at),
  )
  return { status: 200, body: JSON.stringify({ data: { url, expires_at: found.expires_at } }) }
}

const mismatch = (reason: string) =>
  refusal(400, 'INVALID_INPUT', `The file that was uploaded ${reason}.`, { field: 'asset_id', reason })

/** What arrived must be what was registered. */
const checkReceived =
  ({ size_bytes, mime_type }: Upload) =>
  ({ size, mimeType }: ReceivedUpload) => {
    if (size === 0) throw notUploaded()
    if (size > mostBytes) throw mismatch('has more than 50 MB')
    if (size_bytes !== null && size !== size_bytes) throw mismatch(`has ${size} bytes and not ${size_bytes}`)
    if (mimeType !== null && mimeType.toLowerCase() !== mime_type) throw mismatch(`is ${mimeType} and not ${mime_type}`)
  }

const notUploaded = () => refusal(409, 'UPLOAD_NOT_FOUND', 'The file has not been uploaded.')

/** Commits what has arrived; null when nothing has. With `is_free` what was not counted when it began must fit the budget; `metadata` are those of the file. */
export const commitArrived = async (
  context: HandlerContext,
  upload: Upload,
  more: { readonly is_free?: boolean; readonly metadata?: Record<string, unknown> } = {},
): Promise<Reply | null> => {
  const { storage } = context.services.media
  const check = checkReceived(upload)
  const version = { projectId: projectIdOf(context), assetId: upload.asset_id, version: upload.version }
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
      ...more,
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

export const commit = async (context: HandlerContext): Promise<Answer> => {
  const { asset_id, upload_id } = context.body as { asset_id: string; upload_id: string }
  if (asset_id.toLowerCase() !== upload_id.toLowerCase())
    throw refusal(400, 'INVALID_INPUT', 'upload_id: must be equal to asset_id', {
      field: 'upload_id',
      reason: 'must be equal to asset_id',
    })
  const found = await linked(context, 'media_lookup', { asset_id, with_upload: true })
  if (found.status === 200) return found
  const upload = dataOf<Upload>(found)
  const committed = await commitArrived(context, upload, { is_free: isFree(context) })
  if (committed) return committed
  // nothing came to replace it
  if (upload.former !== null) return linked(context, 'media_lookup', { asset_id })
  throw notUploaded()
}

/** An asset; one that is pending is committed when its file has arrived. */
export const get = async (context: HandlerContext): Promise<Answer> => {
  const asset_id = context.params['assetId']
  const found = await linked(context, 'media_lookup', { asset_id })
  if (found.status === 200) return found
  const upload = dataOf<Upload>(found)
  const committed = await commitArrived(context, upload, { is_free: isFree(context) }).catch((error: unknown) => {
    // a file that is not as registered is committed by nobody
    if (error instanceof ApiError && error.status < 500) return null
    throw error
  })
  if (committed) return committed
  throw refusal(404, 'NOT_FOUND', 'There is no such asset.')
}

/** The bytes are gone before the answer. */
export const remove = async (context: HandlerContext): Promise<Answer> => {
  const { storage } = context.services.media
  const reply = await context.call('media_delete', { asset_id: context.params['assetId'], is_free: isFree(context) })
  const { id } = dataOf<{ id: string }>(reply)
  await storage.remove(projectIdOf(context), id)
  await context.call('media_removed', { asset_ids: [id] })
  return reply
}

/** The tag covers the URLs: what a cache keeps must not outlive them. */
export const catalog = async (context: HandlerContext): Promise<Answer> => {
  const reply = await linked(context, 'media_catalog_get', { slug: context.params['slug'] })
  const etag = `"${createHash('sha256').update(reply.body).digest('base64url').slice(0, 32)}"`
  const headers = { 'Cache-Control': 'public, max-age=300', ETag: etag }
  return isKnown(context.request.headers['if-none-match'], etag)
    ? { status: 304, body: '', headers }
    : { status: reply.status, body: reply.body, headers }
}
