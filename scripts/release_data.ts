// npm run release:data: a data folder of this version, as a backup that is kept in the repository, for test/fleet/releases.test.ts of all later versions. Run it when a version is
// released; the data of the version before go.
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { constants, zstdCompress, zstdDecompress } from 'node:zlib'
import { root } from '#server/root.ts'
import { endPrograms } from '#test/support/process.ts'
import { makeRelease } from '#test/support/release.ts'

const folder = join(root, 'test/releases')
const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
try {
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder)
  const { data } = await makeRelease(folder, version)
  // a project's database is nearly the template's: with a window over both, a third of the size
  const params = {
    [constants.ZSTD_c_compressionLevel]: 19,
    [constants.ZSTD_c_windowLog]: 27,
    [constants.ZSTD_c_enableLongDistanceMatching]: 1,
  }
  const packed = await promisify(zstdCompress)(await promisify(zstdDecompress)(await readFile(data)), { params })
  await writeFile(data, packed)
  process.stdout.write(`Wrote test/releases: version ${version}, ${(packed.length / 1e6).toFixed(1)} MB.\n`)
} finally {
  await endPrograms()
}
