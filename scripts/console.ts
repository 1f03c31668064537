import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bundleConsole } from '#server/console/bundle.ts'
import { root } from '#server/root.ts'

/** `npm run console:build` writes the console's bundle to console/dist, for an installation without its sources, such as a container. */
const folder = join(root, 'console/dist')
const { files } = await bundleConsole()
await rm(folder, { recursive: true, force: true })
await mkdir(folder, { recursive: true })
for (const { name, bytes } of files) await writeFile(join(folder, name), bytes)
process.stdout.write(`console/dist: ${files.length} files\n`)
// the areas, of whose document the forms are made, keep timers of their own
process.exit(0)
