import { z } from 'zod'
import { answer } from '#server/http/interface.ts'
import { Text, Time, Uuid } from '#server/http/schemas.ts'
import { mostBytes } from '#server/media/storage.ts'

export const Asset = answer('media_asset_json', {
  status: z.enum(['pending', 'committed']),
  storage_url: z.string(),
  thumbnail_url: z.string().nullable(),
  public_url: z
    .string()
    .nullable()
    .describe('The lasting address of a public file, for anybody; of an image with `w`, `h`, `fit` and `format`.'),
})
export const Registered = z.strictObject({
  data: z.strictObject({ id: Uuid, filename: z.string(), storage_url: z.string(), uploaded_by: Uuid.nullable() }),
  upload_url: z.string(),
  upload_url_expires_at: Time,
})
export const Signed = z.strictObject({ url: z.string(), expires_at: Time, asset_id: Uuid.optional() })

const Size = z
  .int(`must be a whole number of 1 to ${mostBytes}`)
  .min(1, `must be a whole number of 1 to ${mostBytes}`)
  .max(mostBytes, `must be a whole number of 1 to ${mostBytes}`)
export const NewUpload = z.object({
  filename: Text(255, 1),
  mime_type: Text(127, 1),
  size_bytes: Size.optional(),
  is_public: z
    .boolean('must be true or false')
    .optional()
    .describe('Whether anybody reads the file at its `public_url`, once it is committed.'),
})
