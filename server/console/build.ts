import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import { root } from '#server/root.ts'

export type Asset = {
  readonly type: string
  readonly etag: string
  readonly bytes: Buffer
  readonly gzip: Buffer
  readonly brotli: Buffer
}
export type Built = { readonly html: string; readonly etag: string; readonly assets: ReadonlyMap<string, Asset> }

const types = { js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8' }

const digest = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('base64url')

const assetOf = async (bytes: Buffer, type: string): Promise<Asset> => ({
  type,
  bytes,
  etag: `"${digest(bytes)}"`,
  gzip: await promisify(gzip)(bytes),
  brotli: await promisify(brotliCompress)(bytes),
})

const pageOf = (script: string, style: string, hasGithub: boolean) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Trellis console</title>
<link rel="stylesheet" href="/console/assets/${style}">
<script type="module" src="/console/assets/${script}"></script>
</head>
<body><div id="console"${hasGithub ? ' data-github="true"' : ''}></div><noscript>The console needs JavaScript.</noscript></body>
</html>
`

/**
 * Bundles the console from its sources, in memory: a container without a writable folder has it too, and a changed source
 * cannot meet an old bundle. The names of the assets contain a hash of their content. The page says whether this server has a GitHub application.
 */
export const buildConsole = async (hasGithub: boolean): Promise<Built> => {
  // loaded here: few server processes ever serve the console
  const { build, stop } = await import('esbuild')
  try {
    const { outputFiles } = await build({
      entryPoints: [join(root, 'console/src/main.tsx')],
      tsconfig: join(root, 'console/tsconfig.json'),
      outdir: '/console',
      entryNames: '[name]-[hash]',
      bundle: true,
      minify: true,
      write: false,
      format: 'esm',
      platform: 'browser',
      target: 'es2022',
      legalComments: 'none',
      logLevel: 'silent',
    })
    const assets = new Map<string, Asset>()
    for (const { path, contents } of outputFiles) {
      const name = path.slice(path.lastIndexOf('/') + 1)
      assets.set(name, await assetOf(Buffer.from(contents), name.endsWith('.css') ? types.css : types.js))
    }
    const named = (end: string) => [...assets.keys()].find((name) => name.endsWith(end)) ?? ''
    const html = pageOf(named('.js'), named('.css'), hasGithub)
    return { html, etag: `"${digest(html)}"`, assets }
  } finally {
    // esbuild is a process of its own, which would outlive the build
    await stop()
  }
}
