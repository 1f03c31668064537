import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import Fastify, { type FastifyInstance } from 'fastify'
import { encodingOf } from '#server/http/encodings.ts'

type Reference = { readonly html: string; readonly policy: string; readonly script: string; readonly packed: Buffer }

/**
 * Renders the page once, with the package's own plugin. Loaded at the first request: the package is 4 MB of source, and
 * few server processes ever serve it.
 */
const load = async (): Promise<Reference> => {
  const { default: apiReference } = await import('@scalar/fastify-api-reference')
  const app = Fastify()
  await app.register(apiReference, {
    routePrefix: '/docs',
    configuration: {
      url: '/openapi.json',
      pageTitle: 'Trellis API',
      // no requests to other hosts: no fonts, no proxy, no telemetry, no services of the package's maker
      withDefaultFonts: false,
      telemetry: false,
      hideClientButton: true,
      showDeveloperTools: 'never',
      agent: { disabled: true },
      mcp: { disabled: true },
    },
  })
  const html = (await app.inject('/docs/')).body.replace('src="js/scalar.js"', 'src="/docs/scalar.js"')
  const script = (await app.inject('/docs/js/scalar.js')).body
  await app.close()
  return { html, policy: policyFor(html), script, packed: await promisify(gzip)(script) }
}

/** Content-Security-Policy: scripts of this origin and the inline one, by its hash; the page sets inline styles. */
const policyFor = (html: string): string => {
  const inline = [...html.matchAll(/<script type="text\/javascript">([\s\S]*?)<\/script>/g)].map(
    ([, text = '']) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`,
  )
  return [
    "default-src 'none'",
    `script-src 'self' ${inline.join(' ')}`,
    "style-src 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

/** GET /docs: the API reference in a browser, made from /openapi.json. It works without internet access. */
export const reference = async (app: FastifyInstance): Promise<void> => {
  let loading: Promise<Reference> | undefined
  const loaded = () => {
    loading ??= load()
    return loading
  }
  app.get('/docs/', (_request, reply) => reply.redirect('/docs', 301))
  app.get('/docs', async (_request, reply) => {
    const { html, policy } = await loaded()
    return reply.type('text/html; charset=utf-8').header('content-security-policy', policy).send(html)
  })
  app.get('/docs/scalar.js', async (request, reply) => {
    const { script, packed } = await loaded()
    const isPacked = encodingOf(request, ['gzip']) !== undefined
    if (isPacked) reply.header('content-encoding', 'gzip')
    return reply
      .type('text/javascript; charset=utf-8')
      .header('vary', 'accept-encoding')
      .header('cache-control', 'public, max-age=86400')
      .send(isPacked ? packed : script)
  })
}
