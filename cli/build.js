// Makes dist/trellis.js: the command and what it uses of the SDK in one file, plain JavaScript for Node 20.12 and later. Run by `npm pack`.
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, stop } from 'esbuild'

const here = dirname(fileURLToPath(import.meta.url))
const { version } = JSON.parse(await readFile(join(here, 'package.json'), 'utf8'))
await build({
  entryPoints: [join(here, 'src/main.ts')],
  outfile: process.argv[2] ?? join(here, 'dist/trellis.js'),
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.12',
  // a stack trace that a user sends names functions
  keepNames: true,
  define: { trellisVersion: JSON.stringify(version) },
})
// its process would keep this one alive
await stop()
