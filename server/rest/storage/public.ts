import type { FastifyReply, FastifyRequest } from 'fastify'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { unserved } from '#server/http/client_credentials.ts'
import { addressKey } from '#server/http/rate_limiter.ts'
import { namedProject } from '#server/http/root.ts'
import type { Signable } from '#server/media/assets.ts'
import { sharedLimits } from '#server/media/public.ts'
import { download } from '#server/media/serve.ts'
import { type At, parsed } from '#server/rest/storage/context.ts'
import { openProject, savedAs } from '#server/rest/storage/signed.ts'
import { TransformQuery, variantFor } from '#server/rest/storage/transforms.ts'
import type { Services } from '#server/services.ts'

/** The project that an address without credentials is about: the one that its root names, or that of the key, where one is sent. */
const projectOf = async (services: Services, request: FastifyRequest): Promise<string> => {
  const named = namedProject(request.raw)
  if (named) return named
  const { apikey } = { ...request.headers, ...(request.query as { apikey?: string }) }
  const key = typeof apikey === 'string' && apikey.length <= 200 ? await services.projectCache.byKey(apikey) : null
  if (key) return key.project.projectId
  const message = 'Public files have addresses under the root of their project, <server>/p/<project id>.'
  throw refusal(404, 'PROJECT_NOT_NAMED', message)
}

/** A file of a public bucket, or one that is public itself, for anybody; each request asks the database. */
export const getPublic = async (
  services: Services,
  at: At,
  isImage: boolean,
  request: FastifyRequest,
  reply: FastifyReply,
) => {
  const address = addressKey(request.ip)
  const projectId = await projectOf(services, request)
  const project = await openProject(services, projectId)
  if (!project.place) throw unserved(project)
  request.trellisProject = projectId
  services.rateLimiter.take([{ key: `project ${projectId} public`, perSecond: 1000, burst: 1000 }])
  const claims = { caller: 'client_key', projectId }
  const reading = { readOnly: true, requester: request.raw.socket }
  const asset = dataOf<Omit<Signable, 'expires_at'>>(
    await services.database.call(project.place, 'app_anon', claims, 'media_public_at', at, reading),
  )
  const { download: name } = request.query as { download?: string }
  const link = {
    projectId,
    key: asset.key,
    assetId: asset.asset_id,
    object: asset.object,
    mimeType: asset.mime_type,
    filename: asset.filename,
    variant: isImage ? variantFor(parsed(request.query, TransformQuery, 'query'), asset.mime_type) : null,
  }
  return download(services, link, request, reply, {
    ...sharedLimits(services, address, asset.asset_id),
    ...(name === undefined ? {} : { disposition: savedAs(String(name), link) }),
  })
}
