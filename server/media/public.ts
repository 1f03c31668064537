import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { unserved } from '#server/http/client_credentials.ts'
import { addressKey } from '#server/http/rate_limiter.ts'
import { uuidPattern } from '#server/http/schemas.ts'
import type { Signable } from '#server/media/assets.ts'
import { publicPrefix } from '#server/media/links.ts'
import { download } from '#server/media/serve.ts'
import { type Variant, variantText } from '#server/media/variants.ts'
import type { Services } from '#server/services.ts'

/** After a file was withdrawn no copy is shown for longer than five minutes, also where a storage sends it: 60 + 120 + 60 seconds. */
const shared = { seconds: 300, redirectSeconds: 60, signedSeconds: 120 }

const side = 'must be a whole number of 1 to 4096'
const Side = z
  .string(side)
  .regex(/^[1-9]\d{0,3}$/, side)
  .transform(Number)
  .refine((pixels) => pixels <= 4096, side)
const Changes = z.object({
  w: Side.optional(),
  h: Side.optional(),
  fit: z.enum(['cover', 'contain'], 'must be cover or contain').optional(),
  format: z.enum(['webp', 'jpeg', 'png', 'avif'], 'must be webp, jpeg, png or avif').optional(),
})

const invalid = (field: string, reason: string) =>
  refusal(400, 'INVALID_INPUT', `${field}: ${reason}`, { field, reason })

/** How an image is to be changed; null: not at all. Other parameters, as some add against caches, mean nothing. */
const variantOf = (query: unknown, mimeType: string): string | null => {
  const parsed = Changes.safeParse(query)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw invalid(issue?.path.join('.') ?? 'query', issue?.message ?? 'is not valid')
  }
  if (Object.keys(parsed.data).length === 0) return null
  if (!mimeType.startsWith('image/')) throw invalid('w', 'only images are changed')
  return variantText(parsed.data as Variant)
}

type Needed = Pick<Services, 'database' | 'media' | 'now' | 'projectCache' | 'rateLimiter'>

/**
 * `/m/<project>/<asset>`: files that anybody may read, without a signature. Each request asks the database, so that a file which is withdrawn, deleted
 * or hidden is 404 at once.
 */
export const servePublicMedia = (services: Needed) => async (app: FastifyInstance) => {
  app.route({
    method: ['GET', 'HEAD'],
    url: `${publicPrefix}:projectId/:assetId`,
    handler: (request, reply) => answer(services, request, reply),
  })
}

const nothingThere = () => refusal(404, 'NOT_FOUND', 'There is no such file.')

const answer = async (services: Needed, request: FastifyRequest, reply: FastifyReply) => {
  const { projectId, assetId } = request.params as { projectId: string; assetId: string }
  const address = addressKey(request.ip)
  services.rateLimiter.take([{ key: `ip ${address} public`, perSecond: 100, burst: 600 }])
  if (!uuidPattern.test(projectId) || !uuidPattern.test(assetId)) throw nothingThere()
  const project = await services.projectCache.byProject(projectId.toLowerCase())
  if (!project || project.hold === 'paused') throw nothingThere()
  if (!project.place) throw unserved(project)
  request.trellisProject = project.projectId
  services.rateLimiter.take([{ key: `project ${project.projectId} public`, perSecond: 1000, burst: 1000 }])
  const claims = { caller: 'client_key', projectId: project.projectId }
  const args = { asset_id: assetId }
  const reading = { readOnly: true, requester: request.raw.socket }
  const found = dataOf<Omit<Signable, 'expires_at'>>(
    await services.database.call(project.place, 'app_anon', claims, 'media_public', args, reading),
  )
  const link = {
    projectId: project.projectId,
    key: found.key,
    assetId: found.asset_id,
    object: found.object,
    mimeType: found.mime_type,
    filename: found.filename,
    variant: variantOf(request.query, found.mime_type),
  }
  return download(services, link, request, reply, sharedLimits(services, address, found.asset_id))
}

/** How a file is sent that anybody may read: sizes are anybody's choice, so one address makes some at once, and a file gets few new ones, fewer than are kept of it. */
export const sharedLimits = ({ rateLimiter }: Pick<Services, 'rateLimiter'>, address: string, assetId: string) => ({
  shared,
  admit: () =>
    rateLimiter.take([
      { key: `ip ${address} variants`, perSecond: 1, burst: 200 },
      { key: `variants ${assetId}`, perSecond: 1 / 60, burst: 16 },
    ]),
})
