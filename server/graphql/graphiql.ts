import { readFile } from 'node:fs/promises'
import type { FastifyInstance } from 'fastify'
import { refusal } from '#server/errors.ts'

const folder = '/docs/graphiql/'

/** Scripts and workers of this origin alone, none of them inline; the editor sets styles of its own. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "worker-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>GraphQL</title>
<link rel="stylesheet" href="${folder}ruru.css">
<link rel="stylesheet" href="${folder}page.css">
<script type="module" src="${folder}page.js"></script>
</head>
<body>
<div id="ruru-root"><p>Loading the editor. It needs JavaScript; without it send queries with POST, see the API reference.</p></div>
</body>
</html>
`

/** Our own files beside those of the editor. */
const own: Readonly<Record<string, string>> = {
  'page.js': 'text/javascript; charset=utf-8',
  'page.css': 'text/css; charset=utf-8',
}

/**
 * The editor of queries, GraphiQL as the package ruru has it: a page for every project, without data and without a credential. Who opens it writes
 * their token under "Headers". All its files come from here, so that it works without internet access.
 */
export const graphiql = async (app: FastifyInstance): Promise<void> => {
  app.get('/v1/admin/projects/:projectId/graphql', async (request, reply) => {
    if (!/\btext\/html\b/.test(request.headers.accept ?? '')) {
      throw refusal(405, 'METHOD_NOT_ALLOWED', 'Queries are sent with POST; with GET a browser gets an editor.', null, {
        Allow: 'GET, HEAD, POST',
      })
    }
    return reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', policy)
      .header('vary', 'accept')
      .send(page)
  })
  app.get(`${folder}:file`, async (request, reply) => {
    const { file } = request.params as { file: string }
    const type = own[file]
    if (type) {
      const text = await readFile(new URL(`./page/${file}`, import.meta.url), 'utf8')
      return reply.type(type).header('cache-control', 'public, max-age=300').send(text)
    }
    // packed files of 4 MB, read when somebody opens the page
    const { getStaticFile } = await import('ruru/static')
    const found = await getStaticFile({
      staticPath: folder,
      urlPath: `${folder}${file}`,
      acceptEncoding: request.headers['accept-encoding'],
      disallowDevAssets: true,
    })
    if (!found) throw refusal(404, 'NOT_FOUND', 'There is nothing at this path.')
    return (
      reply
        .headers({ ...found.headers, vary: 'accept-encoding', 'cache-control': 'public, max-age=86400' })
        // a worker has the policy of its own file
        .header('content-security-policy', policy)
        .send(found.content)
    )
  })
}
