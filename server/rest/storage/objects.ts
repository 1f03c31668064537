import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { ApiError } from '#server/errors.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { remove } from '#server/media/assets.ts'
import { download } from '#server/media/serve.ts'
import { type At, bodyOf, type Found, found, type Handler, linkTo, parsed } from '#server/rest/storage/context.ts'
import { TransformQuery, variantFor } from '#server/rest/storage/transforms.ts'

type Described = {
  readonly id: string
  readonly version: string
  readonly mime_type: string
  readonly size_bytes: number
  readonly created_at: string
  readonly updated_at: string
}

/** A file as storage-js shows one. Nobody counts reads: it was accessed when it was changed. */
export const objectOf = (name: string, of: Described) => ({
  name,
  id: of.id,
  version: of.version,
  created_at: of.created_at,
  updated_at: of.updated_at,
  last_accessed_at: of.updated_at,
  metadata: {
    eTag: `"${of.version}"`,
    size: of.size_bytes,
    mimetype: of.mime_type,
    cacheControl: 'max-age=300',
    lastModified: of.updated_at,
    contentLength: of.size_bytes,
    httpStatusCode: 200,
  },
})

export const describedAs = (of: Found): Described => ({ ...of, id: of.asset_id, version: of.object })

export const get: Handler = async (context, at, reply) => {
  const link = linkTo(context, await found(context, at))
  return download(context.services, link, context.request, reply)
}

/** An image, changed on its way to whoever reads it. */
export const render: Handler = async (context, at, reply) => {
  const asset = await found(context, at)
  const variant = variantFor(parsed(context.request.query, TransformQuery, 'query'), asset.mime_type)
  return download(context.services, linkTo(context, asset, variant), context.request, reply)
}

export const info: Handler = async (context, at, reply) => {
  const asset = await found(context, at)
  const { metadata, updated_at, ...of } = objectOf(at.key, describedAs(asset))
  return reply.send({
    ...of,
    bucket_id: at.bucket,
    size: asset.size_bytes,
    content_type: asset.mime_type,
    cache_control: metadata.cacheControl,
    etag: metadata.eTag,
    last_modified: updated_at,
    metadata: asset.metadata,
  })
}

const sorted = 'must be name, created_at or updated_at'
export const Paths = z.array(z.string().max(1100)).min(1).max(100, 'must have at most 100 paths')
const Order = z.enum(['asc', 'desc'], 'must be asc or desc').nullish()

const Listing = z.object({
  prefix: z.string().max(1024).default(''),
  search: z.string().max(255).nullish(),
  limit: z.int().min(1).max(1000).default(100),
  offset: z.int().min(0).max(10_000).default(0),
  sortBy: z
    .object({
      column: z.enum(['name', 'created_at', 'updated_at', 'last_accessed_at'], sorted).nullish(),
      order: Order,
    })
    .nullish(),
})

export type Named = { readonly path: string } & ({ readonly id?: undefined } | Described)

/** `media_names`, or by time. */
export const namesOf = async (
  context: HandlerContext,
  column: string,
  args: Record<string, unknown>,
): Promise<readonly Named[]> => {
  const byTime = column === 'name' ? {} : { sort_column: column }
  const name = column === 'name' ? 'media_names' : 'media_names_by_time'
  return dataOf<Named[]>(await context.call(name, { ...args, ...byTime }, { readOnly: true }))
}

export const list: Handler = async (context, { bucket }, reply) => {
  const { prefix, search, limit, offset, sortBy } = bodyOf(context, Listing)
  const trimmed = prefix.replace(/^\/+|\/+$/g, '')
  const folder = trimmed === '' ? '' : `${trimmed}/`
  const column = sortBy?.column ?? 'name'
  const listed = await namesOf(context, column === 'last_accessed_at' ? 'updated_at' : column, {
    bucket,
    starts: folder + (search ?? ''),
    is_delimited: true,
    is_descending: sortBy?.order === 'desc',
    page_offset: offset,
    page_limit: limit,
  })
  const folderOf = (name: string) => ({
    name,
    id: null,
    updated_at: null,
    created_at: null,
    last_accessed_at: null,
    metadata: null,
  })
  const shown = listed.map((one) => {
    const name = one.path.slice(folder.length)
    return one.id === undefined ? folderOf(name) : objectOf(name, one)
  })
  return reply.send(shown)
}

const Cursor = z.strictObject({
  column: z.enum(['name', 'created_at', 'updated_at'], sorted),
  order: z.enum(['asc', 'desc']),
  after: z.string().max(1024),
  folder: z.boolean(),
  at: z.iso.datetime({ offset: true }).optional(),
})
const ListingV2 = z.object({
  prefix: z.string().max(1024).default(''),
  limit: z.int().min(1).max(1000).default(1000),
  cursor: z.string().max(4096).optional(),
  with_delimiter: z.boolean().default(false),
  sortBy: z.object({ column: z.enum(['name', 'created_at', 'updated_at'], sorted), order: Order }).optional(),
})

/** A cursor has its own order, as that of storage-api has. */
const cursorOf = (text: string) => {
  let value: unknown
  try {
    value = JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    value = null
  }
  return parsed(value, Cursor, 'cursor')
}

export const listV2: Handler = async (context, { bucket }, reply) => {
  const { prefix, limit, cursor, with_delimiter, sortBy } = bodyOf(context, ListingV2)
  const from = cursor === undefined ? null : cursorOf(cursor)
  const column = from?.column ?? sortBy?.column ?? 'name'
  const order = from?.order ?? sortBy?.order ?? 'asc'
  const listed = await namesOf(context, column, {
    bucket,
    starts: prefix,
    is_delimited: with_delimiter,
    is_descending: order === 'desc',
    page_offset: 0,
    page_limit: limit + 1,
    ...(from ? { after: from.after, after_folder: from.folder } : {}),
    ...(from?.at && column !== 'name' ? { after_at: from.at } : {}),
  })
  const page = listed.slice(0, limit)
  const last = page.at(-1)
  const hasNext = listed.length > limit
  const next = { column, order, after: last?.path ?? '', folder: last?.id === undefined }
  const at = last?.id === undefined || column === 'name' ? {} : { at: last[column] }
  return reply.send({
    hasNext,
    ...(hasNext ? { nextCursor: Buffer.from(JSON.stringify({ ...next, ...at })).toString('base64url') } : {}),
    folders: page.filter((one) => one.id === undefined).map(({ path }) => ({ key: path, name: `${path}/` })),
    objects: page.flatMap((one) => (one.id === undefined ? [] : [{ ...objectOf(one.path, one), key: one.path }])),
  })
}

/** What one of many is refused with; anything else fails them all. */
export const refusedOne = (error: unknown): ApiError => {
  if (error instanceof ApiError && error.status < 500) return error
  throw error
}

const removeOne = async (context: HandlerContext, at: At) => {
  const asset = await found(context, at).catch(refusedOne)
  // what is not there is not listed as removed, as storage-js expects
  if (!('asset_id' in asset)) {
    if (asset.code === 'NOT_FOUND') return []
    throw asset
  }
  await remove({ ...context, params: { assetId: asset.asset_id } })
  return [{ ...objectOf(at.key, describedAs(asset)), bucket_id: at.bucket }]
}

export const removeMany: Handler = async (context, { bucket }, reply) => {
  const { prefixes } = bodyOf(context, z.object({ prefixes: Paths }))
  const removed = []
  for (const key of prefixes) removed.push(...(await removeOne(context, { bucket, key })))
  return reply.send(removed)
}
