import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { isFree } from '#server/media/assets.ts'
import { mostBytes } from '#server/media/storage.ts'
import { bodyOf, type Handler, parsed } from '#server/rest/storage/context.ts'

const sizes = 'must be a number of bytes, or such as 20MB'
const units = { b: 1, kb: 1000, mb: 1_000_000, gb: 1_000_000_000 }

/** `20MB` is 20,000,000 bytes, as storage-api counts. */
const bytesOf = (text: string): number => {
  const [, number, unit = 'b'] = /^(\d{1,9}(?:\.\d{1,6})?)(gb|mb|kb|b)?$/i.exec(text.trim()) ?? []
  return Math.floor(Number(number) * units[unit.toLowerCase() as keyof typeof units])
}
const Size = z
  .union([z.number(sizes), z.string(sizes).transform(bytesOf)], sizes)
  .refine((bytes) => Number.isInteger(bytes) && bytes >= 0, sizes)
  // as storage-api reads it: none
  .transform((bytes) => (bytes === 0 ? null : bytes))

const Settings = {
  public: z.boolean('must be true or false').nullish(),
  file_size_limit: Size.nullish(),
  allowed_mime_types: z.array(z.string().max(200)).max(100).nullish(),
  type: z.literal('STANDARD', 'must be STANDARD').nullish(),
  versioning_status: z.literal('DISABLED', 'must be DISABLED: files have one version').nullish(),
}
const Created = z.object({ id: z.string().max(200).optional(), name: z.string().max(200), ...Settings })
const Updated = z.object(Settings)

const limitOf = (size: number | null | undefined) => {
  if (typeof size === 'number' && size > mostBytes)
    throw refusal(413, 'PAYLOAD_TOO_LARGE', 'The object exceeded the maximum allowed size: a file has at most 50 MB.')
  return size
}

export const createBucket: Handler = async (context, _at, reply) => {
  const { name, public: is_public, file_size_limit, allowed_mime_types } = bodyOf(context, Created)
  const answer = await context.call('bucket_create', {
    name,
    is_public: is_public ?? false,
    file_size_limit: limitOf(file_size_limit) ?? null,
    allowed_mime_types: allowed_mime_types ?? null,
  })
  return reply.send(dataOf(answer))
}

export const updateBucket: Handler = async (context, { bucket }, reply) => {
  const { public: is_public, file_size_limit, allowed_mime_types } = bodyOf(context, Updated)
  const patch = {
    ...(typeof is_public === 'boolean' ? { is_public } : {}),
    ...(file_size_limit === undefined ? {} : { file_size_limit: limitOf(file_size_limit) }),
    ...(allowed_mime_types === undefined ? {} : { allowed_mime_types }),
  }
  return reply.send(dataOf(await context.call('bucket_update', { name: bucket, patch })))
}

export const getBucket: Handler = async (context, { bucket }, reply) =>
  reply.send(dataOf(await context.call('bucket_get', { name: bucket }, { readOnly: true })))

const Listing = z.object({
  limit: z.coerce.number().int().min(1).max(1000).default(100),
  offset: z.coerce.number().int().min(0).max(10_000).default(0),
  sortColumn: z.enum(['id', 'name', 'created_at', 'updated_at']).default('name'),
  sortOrder: z.enum(['asc', 'desc']).default('asc'),
  search: z.string().max(100).default(''),
})

export const listBuckets: Handler = async (context, _at, reply) => {
  const { limit, offset, sortColumn, sortOrder, search } = parsed(context.request.query, Listing, 'query')
  const answer = await context.call(
    'bucket_list',
    {
      search,
      sort_column: sortColumn,
      is_descending: sortOrder === 'desc',
      page_offset: offset,
      page_limit: limit,
    },
    { readOnly: true },
  )
  return reply.send(dataOf(answer))
}

/** In parts, each of which is done: what a part refuses leaves those before it. Bytes go in the background. */
export const emptyBucket: Handler = async (context, { bucket }, reply) => {
  for (;;) {
    const answer = await context.call('bucket_empty', { name: bucket, is_free: isFree(context) }, { readOnly: false })
    if (dataOf<number>(answer) === 0) break
  }
  return reply.send({ message: 'Empty bucket has been queued. Completion may take up to an hour.' })
}

export const deleteBucket: Handler = async (context, { bucket }, reply) =>
  reply.send(dataOf(await context.call('bucket_delete', { name: bucket })))
