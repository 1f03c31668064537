import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { personalToken } from '#test/support/accounts.ts'
import { bundleApp, placesOf } from '#test/support/bundle.ts'
import { type Machine, machine } from '#test/support/cli.ts'
import { diagnosticsOf } from '#test/support/diagnostics.ts'
import { startHarness } from '#test/support/harness.ts'
import { mapOf, sourceMapsOf } from '#test/support/source_maps.ts'

const harness = await startHarness()
const owner = await harness.developer()
const { token } = await personalToken(owner)
const project = await harness.project({ developer: owner })
const { list, shown } = sourceMapsOf(harness, project)
const env = { TRELLIS_URL: harness.url, TRELLIS_TOKEN: token, TRELLIS_PROJECT: project.id }
let here: Machine
beforeEach(async () => {
  await project.sql('delete from app.source_maps')
  here = await machine()
})
const push = (...args: string[]) => here.run(['sourcemaps', 'push', ...args], { env })
const write = async (file: string, text: string) => {
  const place = join(here.folder, file)
  await mkdir(join(place, '..'), { recursive: true })
  await writeFile(place, text)
}
const bundles = async () => (await list()).map(({ release, bundle }) => `${release} ${bundle}`).sort()

test('the maps of a build are uploaded, and stacks of the release are shown in their sources', async () => {
  const app = await bundleApp()
  const { code, stdout, stderr } = await push('--release', '2.0.0', '--dir', join(app.folder, 'dist'))
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toBe('+ assets/main.js\n1 source map of 2.0.0 uploaded.\n')
  expect(await bundles()).toEqual(['2.0.0 assets/main.js'])
  await diagnosticsOf(project).send({ stack: app.stack, app_version: '2.0.0' })
  expect((await shown()).frames[0]).toMatchObject({
    function: placesOf(app)[0]?.name,
    source: { file: 'src/cart.ts', line: 11, function: 'priceOfItem' },
  })
})

test('every map below dist is uploaded, without those of styles, of packages and behind links', async () => {
  for (const file of ['main.js', 'a/b.mjs', 'main.css', 'node_modules/x/y.js', '.git/z.js'])
    await write(`dist/${file}.map`, mapOf())
  await write('elsewhere/secret.js.map', mapOf())
  await symlink(join(here.folder, 'elsewhere'), join(here.folder, 'dist/link'))
  await symlink(join(here.folder, 'elsewhere/secret.js.map'), join(here.folder, 'dist/link.js.map'))
  expect(JSON.parse((await push('--release', '1', '--json')).stdout)).toMatchObject({
    release: '1',
    pushed: [{ bundle: 'a/b.mjs' }, { bundle: 'main.js', size: mapOf().length }],
  })
  expect(await bundles()).toEqual(['1 a/b.mjs', '1 main.js'])
})

test('one map may have the name of another bundle', async () => {
  await write('out/index.android.bundle.packager.map', mapOf())
  const file = 'out/index.android.bundle.packager.map'
  expect((await push('--release', '1', '--dir', file, '--bundle', 'index.android.bundle')).code).toBe(0)
  await write('out/main.jsbundle.map', mapOf())
  expect((await push('--release', '1', '--dir', 'out/main.jsbundle.map')).code).toBe(0)
  expect(await bundles()).toEqual(['1 index.android.bundle', '1 main.jsbundle'])
})

test('what cannot be uploaded is told before anything is sent, or as the server says it', async () => {
  const said = async (...args: string[]) => {
    const { code, stderr } = await push(...args)
    return [code, stderr.split('\n')[0]]
  }
  expect(await said()).toEqual([2, expect.stringContaining('--release is missing')])
  expect(await said('--release', '1')).toEqual([2, expect.stringContaining('There is no')])
  await mkdir(join(here.folder, 'dist'))
  expect(await said('--release', '1')).toEqual([2, expect.stringContaining('no source map below')])
  await write('dist/a b.js.map', mapOf())
  await write('dist/c.js.map', mapOf())
  expect(await said('--release', '1')).toEqual([2, expect.stringContaining('no white space')])
  expect(await said('--release', '1', '--bundle', 'x')).toEqual([2, expect.stringContaining('names one map')])
  expect(await said('--release', 'v'.repeat(65), '--dir', 'dist/c.js.map')).toEqual([1, expect.stringContaining('64')])
  await write('dist/c.js.map', '{}')
  expect(await said('--release', '1', '--dir', 'dist/c.js.map')).toEqual([1, expect.stringContaining('source map')])
  for (let n = 0; n < 101; n += 1) await write(`many/${n}.js.map`, mapOf())
  expect(await said('--release', '1', '--dir', 'many')).toEqual([2, expect.stringContaining('at most 100')])
  expect(await bundles()).toEqual([])
})

test('the maps of the project are listed, all or those of a release', async () => {
  const run = async (...args: string[]) => {
    const { code, stdout } = await here.run(['sourcemaps', 'list', ...args], { env })
    return [code, stdout]
  }
  expect(await run()).toEqual([0, expect.stringContaining('There is no source map')])
  await write('dist/main.js.map', mapOf())
  await push('--release', '1')
  await push('--release', '2')
  expect(await run()).toEqual([0, expect.stringMatching(/^2 +main\.js +1 KB +20\S+Z\n1 +main\.js +1 KB +20\S+Z\n$/)])
  expect(await run('--release', '1')).toEqual([0, expect.stringMatching(/^1 +main\.js .*\n$/)])
  const [, text] = await run('--json', '--release', '2')
  expect(JSON.parse(String(text))).toMatchObject([{ release: '2', bundle: 'main.js', size: mapOf().length }])
})

test('the list goes on after a page of two hundred', async () => {
  await project.sql(`
    insert into app.source_maps (release, bundle, sha256, size, packed_size)
    select n % 10, n || '.js', '', 1, 1 from generate_series(1, 450) n`)
  const { stdout } = await here.run(['sourcemaps', 'list', '--json'], { env })
  expect(new Set(JSON.parse(stdout).map(({ bundle }: { bundle: string }) => bundle)).size).toBe(450)
})

test('the maps of a release are deleted, or that of one bundle, when somebody says so', async () => {
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await here.run(['sourcemaps', 'delete', ...args], { env })
    return [code, stdout, stderr.split('\n')[0]]
  }
  for (const file of ['a.js', 'b.js', 'c.js']) await write(`dist/${file}.map`, mapOf())
  await push('--release', '1')
  await push('--release', '2')
  expect(await run('--yes')).toEqual([2, '', expect.stringContaining('--release is missing')])
  expect(await run('--release', '1')).toEqual([2, '- a.js\n- b.js\n- c.js\n', expect.stringContaining('Nobody can be')])
  expect(await run('--release', '3', '--yes')).toEqual([5, '', expect.stringContaining('no source map of 3')])
  expect(await run('--release', '1', '--bundle', 'd.js', '--yes')).toEqual([
    5,
    '',
    expect.stringContaining('of d.js in 1'),
  ])
  expect(await bundles()).toHaveLength(6)
  expect(await run('--release', '1', '--bundle', 'b.js', '--yes')).toEqual([
    0,
    '- b.js\n1 source map of 1 deleted.\n',
    '',
  ])
  expect(await bundles()).toEqual(['1 a.js', '1 c.js', '2 a.js', '2 b.js', '2 c.js'])
  const { stdout } = await here.run(['sourcemaps', 'delete', '--release', '1', '-y', '--json'], { env })
  expect(JSON.parse(stdout)).toEqual({ release: '1', deleted: ['a.js', 'c.js'] })
  expect(await bundles()).toEqual(['2 a.js', '2 b.js', '2 c.js'])
})
