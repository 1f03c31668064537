import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { administrator } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { idempotency } from '#server/http/idempotency.ts'
import { answer, fieldsOf } from '#server/http/interface.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import {
  between,
  Cursor,
  cursorPage,
  Deleted,
  data,
  JsonObject,
  Limit,
  Page,
  page,
  SmallJson,
  Text,
  Uuid,
} from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'
import { get, isFree, linked, register, remove } from '#server/media/assets.ts'
import { mostBytes } from '#server/media/storage.ts'
import { Asset, NewUpload, Registered } from '#server/routes/media/shapes.ts'
import { mediaWords } from '#server/routes/media/words.ts'

const Bucket = z.strictObject({ name: z.string(), max_object_bytes: z.int().nullable() })
const Usage = z.strictObject({
  buckets: z.array(z.strictObject({ bucket: z.string(), bytes: z.int(), objects: z.int() })),
  registered_bytes: z.int(),
  limit_bytes: z.int().nullable(),
})
const Stored = answer('storage_object_json', { size_bytes: z.int() })
const AssetChange = z.object({
  alt_text: Text(2000).nullable().optional(),
  metadata: SmallJson(8192).optional(),
  folder_id: Uuid.nullable().optional(),
  is_public: z.boolean('must be true or false').optional(),
})

const Side = between(1, 8192)
const Operation = z
  .strictObject({
    type: z.enum(['resize', 'crop', 'convert', 'strip_metadata', 'thumbnail']),
    width: Side.optional(),
    height: Side.optional(),
    fit: z.enum(['cover', 'contain']).optional(),
    format: z.enum(['webp', 'jpeg', 'png', 'avif']).optional(),
    quality: between(1, 100).optional(),
  })
  .refine(
    ({ type, width, height }) => !['resize', 'crop'].includes(type) || width !== undefined || height !== undefined,
    'needs a width or a height',
  )
  .refine(({ type, format }) => type !== 'convert' || format !== undefined, 'needs a format')
const Job = answer('media_job_json', {
  operations: z.array(JsonObject),
  error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
})

const OwnBucket = answer('media_own_bucket_json', { allowed_mime_types: z.array(z.string()).nullable() })
const Types = z
  .array(Text(200, 1), 'must be a list of types such as image/png or image/*')
  .max(100, 'must have at most 100 items')
const BucketChange = z.object({
  is_public: z.boolean('must be true or false').optional(),
  file_size_limit: between(1, mostBytes).nullable().optional(),
  allowed_mime_types: Types.nullable().optional(),
})
const NewBucket = BucketChange.extend({ name: Text(200, 1) })

/** In parts, each of which is done: what a part refuses leaves those before it. */
const emptyBucket = async (context: HandlerContext) => {
  let accepted = 0
  for (;;) {
    const args = { name: context.params['name'], is_free: isFree(context) }
    const answered = await context.call('media_bucket_empty', args, { readOnly: false })
    const part = dataOf<{ accepted: number }>(answered).accepted
    accepted += part
    if (part === 0) return { ...answered, body: JSON.stringify({ data: { accepted } }) }
  }
}

const folderForm: Form = {
  Basics: { name: ['Name', 'Such as `Banners`.'] },
}

const catalogForm: Form = {
  Basics: {
    name: true,
    slug: ['Slug', 'The name in addresses, such as `avatars`. It never changes.', { from: 'name' }],
  },
  Files: {
    asset_ids: ['Files', 'The ids of the files, in their order.'],
    is_public: ['Public', 'Apps read it without a session.'],
  },
}

export const mediaAdmin = area({
  stem: 'media',
  title: 'Media',
  words: mediaWords,
  routes: [
    ...group('/admin/projects/:projectId/media', administrator, [
      route('GET /', 'Files of the project, newest first', {
        description: 'Committed files, or pending ones with `status=pending`. `search` finds a text in the filename.',
        query: {
          status: z.enum(['committed', 'pending'], 'must be committed or pending').default('committed'),
          user_id: Uuid.optional(),
          mime_type: Text(127).optional(),
          folder_id: Uuid.optional(),
          search: Text(200).optional(),
          ...Page,
        },
        handle: (context) => {
          const { limit, offset, ...filters } = context.query
          return linked(context, 'media_list_admin', { ...filters, page_limit: limit, page_offset: offset })
        },
        replies: { 200: page(Asset) },
      }),
      route('POST /upload', 'Register an upload of the project, which no user owns', {
        handle: register,
        description: 'PUT the bytes to `upload_url`; reading the file by its id commits it.',
        body: NewUpload,
        example: { filename: 'banner.png', mime_type: 'image/png', size_bytes: 48213 },
        replies: { 201: Registered },
        refusals: { 400: ['MIME_NOT_ALLOWED', 'SIZE_REQUIRED'], 402: ['FREE_TIER_LIMIT_REACHED'] },
      }),
      ...definitions('media_folder', {
        form: folderForm,
        path: '/folders',
        id: { folderId: Uuid },
        example: { create: { name: 'Banners' }, update: { name: 'Old banners' } },
        summaries: {
          create: 'Make a folder; at most 1,000',
          list: 'Folders, newest first',
          update: 'Rename a folder',
          delete: 'Delete a folder without files',
        },
        refusals: { create: { 409: ['LIMIT_REACHED'] }, delete: { 409: ['FOLDER_NOT_EMPTY'] } },
      }),
      ...definitions('media_catalog', {
        form: catalogForm,
        path: '/catalogs',
        id: { slug: z.string() },
        fields: fieldsOf('media_catalog', {
          is_public: z.boolean('must be true or false'),
          asset_ids: z.array(Uuid).max(500, 'must have at most 500 items'),
        }),
        example: { create: { slug: 'avatars', name: 'Avatars' }, update: { is_public: false } },
        summaries: {
          create: 'Make a catalog, an ordered selection of files that apps read without a session; at most 200',
          list: 'Catalogs, newest first',
          get: 'A catalog',
          update: 'Change a catalog',
          delete: 'Delete a catalog; its files stay',
        },
      }),
      route('POST /buckets', 'Make a bucket, for the storage of supabase-js; at most 200', {
        call: 'media_bucket_create',
        body: NewBucket,
        example: { name: 'avatars', is_public: true, file_size_limit: 1048576, allowed_mime_types: ['image/*'] },
        replies: { 201: data(OwnBucket) },
      }),
      route('GET /buckets', 'The buckets that the project has made, by name', {
        call: 'media_bucket_list',
        operationId: 'listMediaBuckets',
        query: Page,
        replies: { 200: page(OwnBucket) },
      }),
      route('GET /buckets/:name', 'A bucket', { call: 'media_bucket_get', replies: { 200: data(OwnBucket) } }),
      route('PATCH /buckets/:name', 'Change a bucket; files that are there stay', {
        call: 'media_bucket_update',
        body: BucketChange,
        patch: true,
        example: { is_public: false },
        replies: { 200: data(OwnBucket) },
      }),
      route('DELETE /buckets/:name', 'Delete an empty bucket', {
        call: 'media_bucket_delete',
        replies: { 200: Deleted },
      }),
      route('POST /buckets/:name/empty', 'Delete the files of a bucket; the bytes are removed in the background', {
        handle: emptyBucket,
        calls: ['media_bucket_empty'],
        operationId: 'emptyMediaBucket',
        replies: { 202: data(z.strictObject({ accepted: z.int() })) },
      }),
      route('POST /jobs', 'Queue work on an image; at most 100 a minute', {
        call: 'media_job_create',
        description:
          'The result is a new file of the same owner. Operations run in their order. An `Idempotency-Key` makes a repeated request safe.',
        body: z.object({
          asset_id: Uuid,
          operations: z.array(Operation).min(1, 'must have 1 to 10 items').max(10, 'must have 1 to 10 items'),
        }),
        example: {
          asset_id: '00000000-0000-4000-8000-000000000000',
          operations: [
            { type: 'resize', width: 800 },
            { type: 'convert', format: 'webp', quality: 80 },
          ],
        },
        args: (context) => idempotency(context),
        replies: {
          202: data(z.strictObject({ id: Uuid, status: z.literal('queued') })),
          200: data(z.strictObject({ id: Uuid, status: z.literal('queued') })),
        },
      }),
      route('GET /jobs', 'Jobs, newest first; those that are over are kept for 30 days', {
        call: 'media_jobs_list',
        query: {
          asset_id: Uuid.optional(),
          status: z
            .enum(['queued', 'running', 'succeeded', 'failed'], 'must be queued, running, succeeded or failed')
            .optional(),
          ...Page,
        },
        replies: { 200: page(Job) },
      }),
      route('GET /jobs/:jobId', 'A job', { call: 'media_job_get', replies: { 200: data(Job) } }),
      route('GET /:assetId', 'A file', {
        handle: get,
        description: 'A pending file that has arrived is committed by this.',
        replies: { 200: data(Asset) },
        refusals: { 503: ['UPLOAD_UNVERIFIED'] },
      }),
      route('PATCH /:assetId', 'Describe a file, or put it into a folder', {
        body: AssetChange,
        example: { alt_text: 'A red banner', metadata: { season: 'autumn' } },
        handle: (context) =>
          linked(context, 'media_update', { asset_id: context.params['assetId'], patch: context.body }),
        replies: { 200: data(Asset) },
      }),
      route('DELETE /:assetId', 'Delete a file: its bytes are gone before the answer', {
        handle: remove,
        calls: ['media_delete'],
        replies: { 200: data(z.strictObject({ id: Uuid, deleted: z.literal(true) })) },
      }),
    ]),
    ...group('/admin/projects/:projectId/storage', administrator, [
      route('GET /buckets', 'The buckets of the project', {
        call: 'storage_buckets',
        replies: { 200: data(z.array(Bucket)) },
      }),
      route('GET /usage', 'Bytes and objects of each bucket, and the budget of a free project', {
        call: 'storage_usage',
        description:
          '`registered_bytes` counts pending uploads too; `limit_bytes` is its limit, null where there is none.',
        args: ({ resolved }) => ({ is_free: resolved.project?.effectiveTier === 'free' }),
        replies: { 200: data(Usage) },
      }),
      route('GET /objects', 'Objects of a bucket whose keys begin with a prefix, newest first', {
        call: 'storage_objects',
        query: {
          bucket: Text(64, 1).default('media'),
          prefix: Text(1024).default(''),
          cursor: Cursor,
          limit: Limit(1000),
        },
        replies: { 200: cursorPage(Stored) },
      }),
      route('DELETE /objects', 'Delete objects by their keys, all or none; the bytes are removed in the background', {
        body: z.object({
          bucket: Text(64, 1),
          keys: z.array(Text(1100, 1)).min(1, 'must have 1 to 1000 items').max(1000, 'must have 1 to 1000 items'),
        }),
        example: { bucket: 'media', keys: ['project/banner.png'] },
        handle: ({ body, call, ...context }) =>
          call('storage_delete', { ...body, is_free: isFree({ ...context, body, call }) }),
        calls: ['storage_delete'],
        replies: { 202: data(z.strictObject({ accepted: z.int() })) },
      }),
    ]),
  ],
})
