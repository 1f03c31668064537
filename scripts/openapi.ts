import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { loadAreas } from '#server/http/areas.ts'
import { openApi } from '#server/http/openapi.ts'
import { root } from '#server/root.ts'

/**
 * `npm run docs:release` writes the document of this version, against which test/openapi/names compares every later one. It is compressed:
 * nobody reads it, and its text would outweigh all other documents.
 */
const document = JSON.stringify(await openApi(await loadAreas(), 'https://api.trellis.test'))
const file = join(root, 'docs/schema/openapi-released.json.gz')
await writeFile(file, gzipSync(document, { level: 9 }))
// the areas keep timers of their own
process.exit(0)
