import type { FastifyInstance } from 'fastify'
import { envelopeOf, nothingHere, send } from '#server/http/errors.ts'
import { pageHeaders, pageStyle } from '#server/http/page_policy.ts'
import type { Services } from '#server/services.ts'

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

const style = `${pageStyle}
body { max-width: 42rem; }
pre { overflow-x: auto; padding: 1rem; border: 1px solid; border-radius: .25rem; }
`

const page = (url: string) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Trellis</title>
<style>${style}</style>
<main>
<h1>Trellis is running</h1>
<ul>
<li><a href="/console">Console</a>: sign up, create a project, look at its users and data
<li><a href="/docs">API reference</a>: every route with its fields and errors; for programs
<a href="/openapi.json">openapi.json</a>
<li><a href="/health">Health</a>: the parts of this server and their state
</ul>
<p>The first call opens an account. Keep the <code>access_token</code> of its answer, and follow
<code>docs/quickstart.md</code>.</p>
<pre tabindex="0">curl -s ${escaped(url)}/v1/auth/developer/signup \\
  -H 'content-type: application/json' \\
  -d '{"email":"you@example.com","password":"a long passphrase"}'</pre>
</main>
</html>
`

const headers = pageHeaders(null, style)

/** GET / in a browser: where the console and the reference are. Programs get the 404 of any path without a route. */
export const welcome = async (
  app: FastifyInstance,
  { services }: { services: Pick<Services, 'publicUrl'> },
): Promise<void> => {
  app.get('/', async (request, reply) => {
    reply.header('vary', 'accept')
    if (!/\btext\/html\b/.test(request.headers.accept ?? ''))
      return send(reply, { status: 404, body: envelopeOf(nothingHere) })
    return reply.type('text/html; charset=utf-8').headers(headers).send(page(services.publicUrl))
  })
}
