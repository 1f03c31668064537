import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { bundleConsole, consoleSources } from '#server/console/bundle.ts'
import { root } from '#server/root.ts'

export type Asset = {
  readonly type: string
  readonly etag: string
  readonly bytes: Buffer
  /** Packed when it is first asked for, and kept. */
  readonly packed: (encoding: 'br' | 'gzip') => Promise<Buffer>
}
export type Built = { readonly html: string; readonly etag: string; readonly assets: ReadonlyMap<string, Asset> }

const types = { js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8' }

const digest = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('base64url')

// the highest quality takes seconds for a script of half a megabyte, and saves 3 %
const brotliOptions = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }

const assetOf = (bytes: Buffer, type: string): Asset => {
  const kept: Partial<Record<'br' | 'gzip', Promise<Buffer>>> = {}
  return {
    type,
    bytes,
    etag: `"${digest(bytes)}"`,
    packed: (encoding) => {
      kept[encoding] ??=
        encoding === 'br' ? promisify(brotliCompress)(bytes, brotliOptions) : promisify<Buffer, Buffer>(gzip)(bytes)
      return kept[encoding]
    },
  }
}

const pageOf = (script: string, style: string, hasGithub: boolean) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Trellis console</title>
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='none' stroke='%2326804d' stroke-width='2'%3E%3Cpath d='M7 20h10M10 20c5.5-2.5.8-6.4 3-10M9.5 9.4c1.1.8 1.8 2.2 2.3 3.7-2 .4-3.5.4-4.8-.3-1.2-.6-2.3-1.9-3-4.2 2.8-.5 4.4 0 5.5.8zM14.1 6a7 7 0 0 0-1.1 4c1.9-.1 3.3-.6 4.3-1.4 1-1 1.6-2.3 1.7-4.6-2.7.1-4 1-4.9 2z'/%3E%3C/svg%3E">
<link rel="stylesheet" href="/console/assets/${style}">
<script type="module" src="/console/assets/${script}"></script>
</head>
<body><div id="console"${hasGithub ? ' data-github="true"' : ''}></div><noscript>The console needs JavaScript.</noscript></body>
</html>
`

const distFolder = join(root, 'console/dist')

/** The bundle: what `npm run console:build` wrote, where there are no sources, as in a container; else made from them. */
const filesOf = async (): Promise<ReadonlyMap<string, Buffer>> => {
  if (!existsSync(consoleSources)) {
    const names = await readdir(distFolder)
    return new Map(
      await Promise.all(names.map(async (name) => [name, await readFile(join(distFolder, name))] as const)),
    )
  }
  // a changed source cannot meet an old bundle: it is made in memory
  const { files } = await bundleConsole()
  return new Map(files.map(({ name, bytes }) => [name, bytes]))
}

/** The console's page and assets, whose names contain a hash of their content. The page says whether this server has a GitHub application. */
export const buildConsole = async (hasGithub: boolean): Promise<Built> => {
  const assets = new Map(
    [...(await filesOf())].map(([name, bytes]) => {
      const type = types[extname(name).slice(1) as keyof typeof types]
      return [name, assetOf(bytes, type)] as const
    }),
  )
  const named = (end: string) => [...assets.keys()].find((name) => name.startsWith('main-') && name.endsWith(end)) ?? ''
  const html = pageOf(named('.js'), named('.css'), hasGithub)
  return { html, etag: `"${digest(html)}"`, assets }
}

/** When a source of the console was last changed, in milliseconds; 0 where there are none. */
export const consoleChangedAt = async (): Promise<number> => {
  if (!existsSync(consoleSources)) return 0
  const names = await readdir(consoleSources, { recursive: true })
  const times = await Promise.all(names.map(async (name) => (await stat(join(consoleSources, name))).mtimeMs))
  return Math.max(0, ...times)
}
