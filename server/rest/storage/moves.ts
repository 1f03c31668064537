import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { projectIdOf } from '#server/http/project.ts'
import { bodyOf, found, type Handler } from '#server/rest/storage/context.ts'
import { describedAs, objectOf } from '#server/rest/storage/objects.ts'
import { receiving, store } from '#server/rest/storage/upload.ts'

const Key = z.string().max(1100)
const Name = z.string().min(1).max(200)
const Moved = z.object({
  bucketId: Name,
  sourceKey: Key,
  destinationKey: Key,
  destinationBucket: Name.nullish(),
})
const Copied = Moved.extend({
  copyMetadata: z.boolean().default(true),
  metadata: z.object({ mimetype: z.string().max(200).optional() }).nullish(),
})

export const move: Handler = async (context, _at, reply) => {
  const { bucketId, sourceKey, destinationKey, destinationBucket } = bodyOf(context, Moved)
  const to = { to_bucket: destinationBucket ?? bucketId, to_key: destinationKey }
  const moved = await context.call('media_move', { bucket: bucketId, key: sourceKey, ...to })
  const { asset_id } = dataOf<{ asset_id: string }>(moved)
  return reply.send({ message: 'Successfully moved', Id: asset_id, Key: destinationKey })
}

/** A copy comes in as an upload does, and keeps what that keeps. */
export const copy: Handler = async (context, _at, reply) => {
  const { bucketId, sourceKey, destinationKey, destinationBucket, copyMetadata, metadata } = bodyOf(context, Copied)
  const { services, request } = context
  const to = { bucket: destinationBucket ?? bucketId, key: destinationKey }
  const replaces = request.headers['x-upsert'] === 'true'
  const asset = await found(context, { bucket: bucketId, key: sourceKey })
  // said before the bytes are read
  await context.call('media_admit', { ...to, replaces }, { readOnly: false })
  const name = { projectId: projectIdOf(context), assetId: asset.asset_id, object: asset.object }
  const gone = () => refusal(404, 'NOT_FOUND', 'There is no such file.')
  if (!(await services.media.storage.stat(name))) throw gone()
  const source = await services.media.storage.read(name)
  const type = (copyMetadata ? undefined : metadata?.mimetype) ?? asset.mime_type
  const id = await receiving(context, type, source, (file) =>
    store(context, to, file, { replaces, metadata: copyMetadata ? asset.metadata : {} }),
  )
  const made = await found(context, to)
  return reply.send({ Id: id, Key: `${to.bucket}/${to.key}`, ...objectOf(to.key, describedAs(made)) })
}
