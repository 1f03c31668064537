import type { FastifyReply } from 'fastify'
import type { ApiError } from '#server/errors.ts'
import { nothingHere } from '#server/http/errors.ts'

type Shown = { readonly code: string; readonly error?: string; readonly status?: number; readonly message?: string }

/** Where clients of Supabase's storage act on a code, a status or a text, they get those that they know. */
const known: Readonly<Record<string, Shown>> = {
  NOT_FOUND: { code: 'NoSuchKey', error: 'not_found', message: 'Object not found' },
  BUCKET_NOT_FOUND: { code: 'NoSuchBucket', error: 'Bucket not found', message: 'Bucket not found' },
  BUCKET_EXISTS: { code: 'BucketAlreadyExists', error: 'Duplicate', message: 'The resource already exists' },
  BUCKET_NOT_EMPTY: { code: 'ResourceNotEmpty', message: 'The bucket you tried to delete is not empty' },
  INVALID_BUCKET_NAME: { code: 'InvalidBucketName', error: 'Invalid Input' },
  KEY_IN_USE: { code: 'KeyAlreadyExists', error: 'Duplicate', message: 'The resource already exists' },
  PAYLOAD_TOO_LARGE: { code: 'EntityTooLarge', error: 'Payload too large' },
  MIME_NOT_ALLOWED: { code: 'InvalidMimeType', error: 'invalid_mime_type', status: 415 },
  FORBIDDEN: { code: 'AccessDenied', error: 'Unauthorized' },
}

/** What a bucket does not take is said in the words that apps look for. */
const ofBucket = ({ code, details }: ApiError): string | undefined => {
  if (code === 'PAYLOAD_TOO_LARGE' && details?.['limit']) return 'The object exceeded the maximum allowed size'
  return code === 'MIME_NOT_ALLOWED' && details?.['type'] ? `mime type ${details['type']} is not supported` : undefined
}

/** In the form of storage-api; `details.code` is the code that our own routes have. */
export const sendRefusal = (reply: FastifyReply, error: ApiError) => {
  const shown = error === nothingHere ? undefined : known[error.code]
  if (error.headers) reply.headers(error.headers)
  const { code, status } = { code: shown?.code ?? error.code, status: shown?.status ?? error.status }
  return reply
    .status(status)
    .type('application/json; charset=utf-8')
    .send({
      statusCode: String(status),
      error: shown?.error ?? code,
      message: shown?.message ?? ofBucket(error) ?? error.message,
      code,
      details: { ...error.details, code: error.code },
    })
}
