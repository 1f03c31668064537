import { z } from 'zod'
import { appKey, endUser, endUserOrServer } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { between, data, JsonObject, Limit, NotModified, Offset, page, Text, Time, Uuid } from '#server/http/schemas.ts'
import { catalog, commit, get, linked, presign, register, remove } from '#server/media/assets.ts'
import { Asset, NewUpload, Registered, Signed } from '#server/routes/media/shapes.ts'
import { mediaWords } from '#server/routes/media/words.ts'

const Catalog = z.strictObject({
  slug: z.string(),
  name: z.string(),
  updated_at: Time,
  assets: z.array(
    z.strictObject({
      id: Uuid,
      filename: z.string(),
      mime_type: z.string(),
      url: z.string(),
      thumbnail_url: z.string().nullable(),
      alt_text: z.string().nullable(),
      metadata: JsonObject,
      position: z.int(),
    }),
  ),
})

const notFound = { 404: ['NOT_FOUND'] }

export const media = area({
  stem: 'media',
  title: 'Media',
  part: 'Content',
  about: 'Uploads, pictures in sizes, folders and catalogs.',
  codes: 'by area',
  invalid: 'INVALID_INPUT',
  invalidBody: 'INVALID_BODY',
  words: mediaWords,
  routes: [
    ...group('/client/media', endUserOrServer, [
      route('GET /', "The caller's files, newest first; all files for a server key without a user", {
        query: { limit: Limit(), offset: Offset, folder_id: Uuid.optional() },
        handle: (context) => {
          const { limit, offset, folder_id } = context.query
          return linked(context, 'media_list', { folder_id, page_limit: limit, page_offset: offset })
        },
        replies: { 200: page(Asset) },
      }),
      route('POST /upload', 'Register an upload', {
        handle: register,
        calls: ['media_upload'],
        caller: endUser,
        description:
          'PUT the bytes to `upload_url` with the registered type as `Content-Type` and without credentials, then commit. Free projects must send `size_bytes`.',
        body: NewUpload,
        example: { filename: 'photo.png', mime_type: 'image/png', size_bytes: 48213 },
        replies: { 201: Registered },
      }),
      route('POST /presign', 'Sign a URL to download or upload a file by its key', {
        handle: presign,
        operationId: 'presignMediaUpload',
        // a GET; PUT asks internal.check_not_banned
        reads: true,
        description:
          'Keys begin with `user/<user id>/`, in a bucket other than media with `<user id>/`. PUT is for projects that are not free; the same key again is the same asset, whose bytes the next commit replaces. `expires_in_seconds` is at most 3600 for PUT and 86400 for GET. A GET with `w`, `h`, `fit` or `format` is of an image that is changed so: WebP unless `format` says otherwise.',
        body: z.object({
          bucket: Text(64, 1),
          key: Text(1100, 1),
          method: Text(16, 1),
          content_type: Text(127, 1).optional(),
          expires_in_seconds: z
            .int('must be a whole number of at least 1')
            .min(1, 'must be a whole number of at least 1')
            .optional(),
          w: between(1, 4096).optional(),
          h: between(1, 4096).optional(),
          fit: z.enum(['cover', 'contain'], 'must be cover or contain').optional(),
          format: z.enum(['webp', 'jpeg', 'png', 'avif'], 'must be webp, jpeg, png or avif').optional(),
        }),
        example: { bucket: 'media', key: 'user/00000000-0000-4000-8000-000000000000/photo.png', method: 'GET' },
        replies: { 200: data(Signed) },
        refusals: {
          400: ['INVALID_METHOD', 'MIME_NOT_ALLOWED', 'PRESIGN_PUT_NOT_AVAILABLE'],
          403: ['FORBIDDEN', 'USER_BANNED'],
          404: ['NOT_FOUND', 'BUCKET_NOT_FOUND'],
          409: ['KEY_IN_USE'],
        },
        failure: 'CREATE_FAILED',
      }),
      route('POST /commit', 'Commit an upload that has arrived; again is the same', {
        handle: commit,
        operationId: 'commitMediaUpload',
        body: z.object({ upload_id: Uuid, asset_id: Uuid }),
        example: {
          upload_id: '00000000-0000-4000-8000-000000000000',
          asset_id: '00000000-0000-4000-8000-000000000000',
        },
        replies: { 200: data(Asset) },
        refusals: {
          ...notFound,
          402: ['FREE_TIER_LIMIT_REACHED'],
          409: ['UPLOAD_NOT_FOUND'],
          503: ['UPLOAD_UNVERIFIED'],
        },
      }),
      route('GET /:assetId', 'A file of the caller', {
        handle: get,
        description: 'A pending file that has arrived is committed by this.',
        replies: { 200: data(Asset) },
        refusals: { 503: ['UPLOAD_UNVERIFIED'] },
      }),
      route('DELETE /:assetId', 'Delete a file of the caller: its bytes are gone before the answer', {
        handle: remove,
        calls: ['media_delete'],
        replies: { 200: data(z.strictObject({ id: Uuid, deleted: z.literal(true) })) },
      }),
      route('GET /catalogs/:slug', 'A public catalog of files, for apps without a session', {
        handle: catalog,
        caller: appKey,
        headers: { 'If-None-Match': Text(1000).optional() },
        replies: { 200: data(Catalog), 304: NotModified },
        refusals: notFound,
      }),
    ]),
  ],
})
