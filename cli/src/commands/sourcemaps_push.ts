import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join, relative, resolve, sep } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { putSourceMap } from '../../../sdk/src/generated/admin.ts'
import { plain } from '../../../server/plain.ts'
import { apiFor } from '../api.ts'
import type { Command } from '../command.ts'
import { exits, filesError, usageError } from '../exit.ts'
import { projectFor } from '../settings.ts'

const pack = promisify(gzip)
/** What the server takes of one release. */
const mostMaps = 100
const mostBytes = 67_108_864
const mostFolders = 10_000

/** All maps of scripts below a folder. Links are not followed, nor what packages bring. */
const mapsBelow = async (folder: string): Promise<readonly string[]> => {
  const found: string[] = []
  const waiting = [folder]
  for (let read = 0; read < mostFolders; read += 1) {
    const next = waiting.pop()
    if (next === undefined) return found.sort()
    for (const entry of await readdir(next, { withFileTypes: true })) {
      const place = join(next, entry.name)
      if (entry.isDirectory() && entry.name !== 'node_modules' && entry.name !== '.git') waiting.push(place)
      if (entry.isFile() && entry.name.endsWith('.map') && !entry.name.endsWith('.css.map')) found.push(place)
    }
  }
  throw usageError(`${folder} has more than ${mostFolders} folders.`, 'Name the folder of the bundles: --dir dist.')
}

type Found = { readonly file: string; readonly bundle: string }

/** The map of `main.js` is `main.js.map`, beside it. */
const bundleOf = (folder: string, file: string): string =>
  relative(folder, file)
    .split(sep)
    .join('/')
    .replace(/\.map$/, '')

const filesOf = async (at: string, named: string | undefined): Promise<readonly Found[]> => {
  const place = await stat(at).catch(() => null)
  if (!place) throw usageError(`There is no ${at}.`, 'Build first, or name the folder of the bundles: --dir dist.')
  if (place.isFile()) return [{ file: at, bundle: named ?? basename(at).replace(/\.map$/, '') }]
  const files = (await mapsBelow(at)).map((file) => ({ file, bundle: bundleOf(at, file) }))
  if (files.length === 0)
    throw usageError(`There is no source map below ${at}.`, 'Have the bundler write them: --sourcemap of esbuild.')
  if (files.length > mostMaps)
    throw usageError(`A release has at most ${mostMaps} source maps, and ${at} has ${files.length}.`)
  const [only] = files
  if (named === undefined) return files
  if (files.length > 1 || !only) throw usageError('--bundle names one map: --dir must have one, or be its file.')
  return [{ file: only.file, bundle: named }]
}

/** What is wrong with a file, before anything is sent. */
const problemOf = async ({ file, bundle }: Found): Promise<string | null> => {
  if (/[\s\\?#]/.test(bundle) || bundle.length > 200) return `${plain(file)}: the name of a bundle has no white space.`
  if ((await stat(file)).size > mostBytes) return `${plain(file)} has more than ${mostBytes} bytes.`
  return null
}

export const sourcemapsPush: Command = {
  name: 'sourcemaps push',
  summary: 'Upload the source maps of a release, with which stacks in diagnostics are shown',
  about:
    'The release is the app_version that the app reports. A map is that of the bundle beside it: dist/assets/main.js.map that of assets/main.js. A map of React Native is one file: --dir main.jsbundle.map.',
  flags: {
    release: { value: 'VERSION', about: 'The app_version that the app reports' },
    dir: { value: 'DIR', about: 'The folder of the bundles, or one map; else dist', isFile: true },
    bundle: { value: 'NAME', about: 'The name of the bundle of one map, where it is not the name of the file' },
  },
  async run(context) {
    const { terminal, cwd } = context
    const { paint, print } = terminal
    const release = context.option('release')
    if (release === undefined) throw usageError('--release is missing.', 'Name the app_version: --release 1.4.0.')
    const found = await filesOf(resolve(cwd, context.option('dir') ?? 'dist'), context.option('bundle'))
    const problems = (await Promise.all(found.map(problemOf))).filter((problem) => problem !== null)
    if (problems.length > 0) throw filesError(problems)
    const projectId = await projectFor(context)
    const api = await apiFor(context)
    const pushed: { bundle: string; size: number; packed_size: number }[] = []
    for (const { file, bundle } of found) {
      const { data } = await terminal.during(`Uploading ${plain(bundle)}`, async () =>
        api.call(putSourceMap, {
          path: { projectId },
          query: { release, bundle },
          headers: { 'content-type': 'application/gzip' },
          body: await pack(await readFile(file)),
        }),
      )
      const { size, packed_size } = data
      pushed.push({ bundle, size, packed_size })
      if (!terminal.isJson) print(`${paint.green('+')} ${plain(bundle)}`)
    }
    const count = `${pushed.length} ${pushed.length === 1 ? 'source map' : 'source maps'}`
    terminal.answer({ release, pushed }, () => print(`${count} of ${plain(release)} uploaded.`))
    return exits.done
  },
}
