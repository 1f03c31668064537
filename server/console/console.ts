import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Asset, type Built, buildConsole, consoleChangedAt } from '#server/console/build.ts'
import { consoleSession } from '#server/console/session.ts'
import { isKnown } from '#server/http/conditional.ts'
import { encodingOf } from '#server/http/encodings.ts'
import { envelopeOf, nothingHere, send } from '#server/http/errors.ts'
import { readStorageUrl } from '#server/media/s3.ts'
import type { Services } from '#server/services.ts'

/**
 * Scripts and styles of this origin alone; nothing inline, no frame around it, no form that leaves it. Files of projects are shown from `origins` too, and uploaded to
 * them: the public address, and the storage's.
 */
const policyOf = (origins: readonly string[]) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    ["img-src 'self' data:", ...origins].join(' '),
    ["connect-src 'self'", ...origins].join(' '),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')

const originsOf = ({ config, publicUrl }: Pick<Services, 'config' | 'publicUrl'>): readonly string[] => [
  new URL(publicUrl).origin,
  ...(config.STORAGE_URL ? [new URL(readStorageUrl(config.STORAGE_URL).endpoint).origin] : []),
]

const sendAsset = async (request: FastifyRequest, reply: FastifyReply, asset: Asset) => {
  reply
    .header('etag', asset.etag)
    .header('vary', 'accept-encoding')
    .header('cache-control', 'public, max-age=31536000, immutable')
  if (isKnown(request.headers['if-none-match'], asset.etag)) return reply.code(304).send()
  reply.type(asset.type)
  const encoding = encodingOf(request, ['br', 'gzip'])
  if (encoding === undefined) return reply.send(asset.bytes)
  return reply.header('content-encoding', encoding).send(await asset.packed(encoding))
}

/** GET /console: the console in a browser. Built at the first request, and again after a change of its sources; a path of no asset is a page of the program. */
export const consolePages = async (
  app: FastifyInstance,
  { services }: { services: Pick<Services, 'config' | 'publicUrl'> },
): Promise<void> => {
  let building: Promise<Built> | undefined
  let changedAt: number | undefined
  const { GITHUB_CLIENT_ID, GITHUB_CLIENT_SECRET } = services.config
  const built = () => {
    building ??= buildConsole(Boolean(GITHUB_CLIENT_ID && GITHUB_CLIENT_SECRET)).catch((error) => {
      // the next request tries again
      building = undefined
      throw error
    })
    return building
  }
  const page = async (request: FastifyRequest, reply: FastifyReply) => {
    const now = await consoleChangedAt()
    // whoever works on the console sees what was changed at the next load of the page
    if (changedAt !== undefined && now > changedAt) building = undefined
    changedAt = now
    const { html, etag } = await built()
    reply
      .header('etag', etag)
      .header('cache-control', 'no-cache')
      .header('content-security-policy', policyOf(originsOf(services)))
      .header('referrer-policy', 'no-referrer')
    if (isKnown(request.headers['if-none-match'], etag)) return reply.code(304).send()
    return reply.type('text/html; charset=utf-8').send(html)
  }
  // in a scope of its own: its hook is not for the pages
  await app.register(async (scope) => consoleSession(scope))
  app.get('/console', page)
  app.get('/console/*', page)
  app.get('/console/assets/:name', async (request, reply) => {
    const { name } = request.params as { name: string }
    const asset = (await built()).assets.get(name)
    return asset ? sendAsset(request, reply, asset) : send(reply, { status: 404, body: envelopeOf(nothingHere) })
  })
}
