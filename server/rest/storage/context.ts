import type { FastifyReply } from 'fastify'
import type { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { projectIdOf } from '#server/http/project.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { isFree, type Signable } from '#server/media/assets.ts'
import { invalid } from '#server/rest/auth_shapes.ts'

/** What a path of storage-js names: a bucket, and in it a key where there is one. */
export type At = { readonly bucket: string; readonly key: string }
export type Handler = (context: HandlerContext, at: At, reply: FastifyReply) => Promise<unknown>

/** A file as `media_presign` answers one that is read. */
export type Found = Signable & {
  readonly size_bytes: number
  readonly metadata: Record<string, unknown>
  readonly created_at: string
  readonly updated_at: string
}

export const parsed = <T extends z.ZodType>(value: unknown, shape: T, where: string): z.output<T> => {
  const result = shape.safeParse(value)
  if (result.success) return result.data
  const [issue] = result.error.issues
  throw invalid(issue?.path.join('.') || where, issue?.message ?? 'is not valid')
}

/** A version that a request names: files have one, and nothing is answered in its place. */
const checkVersion = (value: unknown) => {
  if (value !== undefined && value !== null) throw invalid('versionId', 'files have one version')
}

export const bodyOf = <T extends z.ZodType>({ body }: HandlerContext, shape: T) => parsed(body, shape, 'body')

export const found = async (context: HandlerContext, { bucket, key }: At, seconds = 3600): Promise<Found> => {
  checkVersion((context.request.query as { versionId?: string }).versionId)
  checkVersion(context.body['versionId'] ?? context.body['sourceVersionId'])
  return dataOf<Found>(
    await context.call(
      'media_presign',
      { bucket, key, method: 'GET', is_free: isFree(context), seconds },
      { readOnly: true },
    ),
  )
}

export const linkTo = (context: HandlerContext, asset: Signable, variant: string | null = null) => ({
  projectId: projectIdOf(context),
  key: asset.key,
  assetId: asset.asset_id,
  object: asset.object,
  mimeType: asset.mime_type,
  filename: asset.filename,
  variant,
})

/** A key as the records of media have it, and back to what storage-js calls it. */
export const recordKey = ({ bucket, key }: At) => (bucket === 'media' ? key : `bucket/${bucket}/${key}`)
export const shownPath = (bucket: string, recorded: string) =>
  bucket === 'media' ? recorded : recorded.slice(`bucket/${bucket}/`.length)
