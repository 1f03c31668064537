// npm run release:data: a data folder of this version, as a backup that is kept in the repository, for test/fleet/releases.test.ts of all later versions. Run it when a version is
// released; the data of the version before go.
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { constants, zstdCompress, zstdDecompress } from 'node:zlib'
import { installedBinaries } from '#fleet/embedded/binaries.ts'
import { root } from '#server/root.ts'
import { run } from '#test/support/backups.ts'
import { endPrograms, endServer, startServer, temporaryFolder } from '#test/support/process.ts'
import { fillRelease } from '#test/support/release.ts'

const folder = join(root, 'test/releases')
const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
const postgres = (await installedBinaries(process.platform, process.arch)).version.split('.')[0] ?? ''
const secretsKey = randomBytes(32).toString('base64')
try {
  const server = await startServer({ DATA_DIR: join(await temporaryFolder(), 'data'), SECRETS_KEY: secretsKey })
  if (server.child.exitCode !== null) throw new Error(server.output())
  const kept = await fillRelease(server.url, { version, postgres, secretsKey })
  await endServer(server)
  const file = join(await temporaryFolder(), 'backup')
  const made = await run('backup', { DATA_DIR: server.dataDir, SECRETS_KEY: secretsKey }, '--to', file)
  if (made.code !== 0) throw new Error(made.output)
  // a project's database is nearly the template's: with a window over both, a third of the size
  const params = {
    [constants.ZSTD_c_compressionLevel]: 19,
    [constants.ZSTD_c_windowLog]: 27,
    [constants.ZSTD_c_enableLongDistanceMatching]: 1,
  }
  const packed = await promisify(zstdCompress)(await promisify(zstdDecompress)(await readFile(file)), { params })
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder)
  await writeFile(join(folder, 'data.tar.zst'), packed)
  await writeFile(join(folder, 'data.json'), `${JSON.stringify(kept, null, 2)}\n`)
  process.stdout.write(`Wrote test/releases: version ${version}, ${(packed.length / 1e6).toFixed(1)} MB.\n`)
} finally {
  await endPrograms()
}
