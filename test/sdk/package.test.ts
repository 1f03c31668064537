import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { build, stop } from 'esbuild'
import { afterAll, expect, test } from 'vitest'
import { loadAreas } from '#server/http/areas.ts'
import { openApi } from '#server/http/openapi.ts'
import { root } from '#server/root.ts'
import { startHarness } from '#test/support/harness.ts'
import { type Document, sdkFiles } from '../../scripts/sdk/generate.ts'

/** The package as it is published: its contents, its types, its weight, and the first lines of its README. */
const folder = await mkdtemp(join(tmpdir(), 'trellis-sdk-'))
afterAll(() => rm(folder, { recursive: true, force: true }))
const sources = join(root, 'sdk')
const tsc = join(root, 'node_modules/typescript/lib/tsc.js')
const run = (file: string, args: string[], more: { cwd?: string; env?: Record<string, string> } = {}) =>
  promisify(execFile)(file, args, { timeout: 120_000, ...more, env: { PATH: process.env['PATH'] ?? '', ...more.env } })

/** Packed beside its sources, not in them: other tests of this run may read them. */
const packed = async (): Promise<{ files: string[]; installed: string }> => {
  const place = join(folder, 'sdk')
  await cp(sources, place, { recursive: true, filter: (from) => !from.endsWith('/dist') })
  await run(process.execPath, [tsc, '-p', place])
  const npm = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
    cwd: place,
    env: { HOME: folder, npm_config_cache: join(folder, 'cache'), npm_config_update_notifier: 'false' },
  })
  const printed = JSON.parse(npm.stdout)
  const [about] = Array.isArray(printed) ? printed : Object.values<any>(printed)
  const app = join(folder, 'app')
  await mkdir(join(app, 'node_modules'), { recursive: true })
  await run('tar', ['-xzf', join(folder, about.filename), '-C', folder])
  await symlink(join(folder, 'package'), join(app, 'node_modules/trellis-sdk'))
  await writeFile(join(app, 'package.json'), '{"type": "module"}')
  return { files: about.files.map(({ path }: { path: string }) => path), installed: app }
}
const { files, installed } = await packed()

test('the package has what it runs on, and no dependency', async () => {
  expect(files).toEqual(
    expect.arrayContaining(['package.json', 'README.md', 'LICENSE', 'dist/index.js', 'dist/index.d.ts']),
  )
  expect(files.filter((path) => !/^(dist\/|package\.json$|README\.md$|LICENSE$)/.test(path))).toEqual([])
  const manifest = JSON.parse(await readFile(join(sources, 'package.json'), 'utf8'))
  for (const kind of ['dependencies', 'peerDependencies', 'devDependencies', 'optionalDependencies']) {
    expect(manifest[kind], kind).toBeUndefined()
  }
  for (const place of Object.values<any>(manifest.exports)) {
    expect(files).toContain((place.default ?? place).replace('./', ''))
  }
  expect(manifest.version).toBe(JSON.parse(await readFile(join(root, 'package.json'), 'utf8')).version)
})

const bundled = async (source: string): Promise<string> => {
  const { outputFiles, metafile } = await build({
    stdin: { contents: source, resolveDir: installed },
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: 'esm',
    // no Node, no DOM: what the package needs beyond the language would not resolve
    platform: 'neutral',
    target: 'es2022',
  })
  await stop()
  expect(Object.keys(metafile.outputs)).toHaveLength(1)
  return outputFiles[0]?.text ?? ''
}
const sizeOf = (text: string) => gzipSync(text, { level: 9 }).length

test('sign-in, events and config are under 20 KB, and what is not used is not there', async () => {
  const some = await bundled(`
    import { createApp, createConfig, createEvents } from 'trellis-sdk'
    import { signInWithPassword } from 'trellis-sdk/client'
    const app = createApp({ url: '', key: '' })
    globalThis.app = [app, createEvents(app), createConfig(app), signInWithPassword]`)
  expect(some).toContain('/v1/client/auth/email/login')
  expect(some).not.toContain('/v1/client/streaks')
  expect(some).not.toContain('/v1/client/realtime')
  expect(some).not.toContain('/v1/admin')
  expect(sizeOf(some)).toBeLessThan(20_000)
  const developer = await bundled(`
    import { createDeveloper } from 'trellis-sdk'
    import { listProjects } from 'trellis-sdk/admin'
    globalThis.developer = [createDeveloper({ url: '' }), listProjects]`)
  expect(developer).not.toContain('/v1/client/')
  expect(sizeOf(developer)).toBeLessThan(sizeOf(some))
})

const typed = `
import { createApp, createDeveloper, isRefusal, type ErrorCode } from 'trellis-sdk'
import { getStreak, listStreaks, sendEvents } from 'trellis-sdk/client'
import { listStreakDefinitions } from 'trellis-sdk/admin'
import type { Streak } from 'trellis-sdk/schemas'

const app = createApp({ url: '', key: '' })
const streaks: readonly Streak[] = (await app.call(listStreaks)).data
const name: string = (await app.call(getStreak, { path: { idOrKey: 'a' } })).data.key
await app.call(sendEvents, { body: { event_name: 'a' } })
const { call } = createDeveloper({ url: '' })
const total: number = (await call(listStreakDefinitions, { path: { projectId: 'a' }, query: { limit: 5 } })).total
const code: ErrorCode = 'STREAK_NOT_FOUND'
export const all = [streaks, name, total, code, isRefusal(undefined, 'STREAK_NOT_FOUND', 'NETWORK_ERROR')]
// @ts-expect-error a path has its parameters
await app.call(getStreak)
// @ts-expect-error an event has a name
await app.call(sendEvents, { body: { properties: {} } })
// @ts-expect-error no code of ours
isRefusal(undefined, 'STREAK_NOT_THERE')
`

test.each([
  ['no DOM and no Node', ['es2022']],
  ['a DOM', ['es2022', 'dom']],
])('its types hold strictly with %s', async (_, lib) => {
  await writeFile(join(installed, 'typed.ts'), typed)
  const options = {
    compilerOptions: {
      target: 'es2022',
      lib,
      types: [],
      module: 'nodenext',
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: false,
      noEmit: true,
    },
    files: ['typed.ts'],
  }
  const config = join(installed, `tsconfig.${lib.length}.json`)
  await writeFile(config, JSON.stringify(options))
  const { stdout } = await run(process.execPath, [tsc, '-p', config]).catch((error) => error as { stdout: string })
  expect(stdout).toBe('')
})

test('the document that the next release will have makes types that hold', async () => {
  const document = JSON.parse(JSON.stringify(await openApi(await loadAreas(), 'https://api.trellis.test'))) as Document
  const place = join(folder, 'next')
  await cp(sources, place, { recursive: true, filter: (from) => !from.endsWith('/dist') })
  const made = sdkFiles(document)
  for (const [file, text] of made) await writeFile(join(folder, 'next', file.slice('sdk/'.length)), text)
  const operations = Object.values(document.paths).flatMap((item) =>
    Object.keys(item).filter((key) => key !== 'parameters'),
  )
  expect(made.flatMap(([, text]) => text.match(/^export const /gm) ?? [])).toHaveLength(operations.length)
  const { stdout } = await run(process.execPath, [tsc, '-p', place, '--noEmit']).catch(
    (error) => error as { stdout: string },
  )
  expect(stdout).toBe('')
})

test('the first code of the README, which the quickstart of the server has too, runs as it stands', async () => {
  const harness = await startHarness()
  const project = await harness.project()
  await project.admin.post('/streaks', { key: 'daily', name: 'Daily practice', qualifying_event: 'practised' })
  const [, code = ''] = /```js\n(.*?)```/s.exec(await readFile(join(sources, 'README.md'), 'utf8')) ?? []
  expect(await readFile(join(root, 'docs/quickstart.md'), 'utf8')).toContain(code)
  const file = join(installed, 'quickstart.js')
  await writeFile(file, code)
  // with and without /v1; a failure ends with another code than 0 and rejects
  for (const url of [harness.url, `${harness.url}/v1`]) {
    const env = { TRELLIS_URL: url, TRELLIS_KEY: project.clientKey }
    const { stdout, stderr } = await run(process.execPath, [file], { env })
    expect(stdout).toMatch(/^[0-9a-f-]{36} \{/)
    expect(stdout).toContain("change: 'started'")
    expect(stderr).toBe('')
  }
})
