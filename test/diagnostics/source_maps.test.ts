import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { encode } from '@jridgewell/sourcemap-codec'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Bundled, bundleApp, placesOf } from '#test/support/bundle.ts'
import { diagnosticsOf } from '#test/support/diagnostics.ts'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { mapOf, sourceMapsOf } from '#test/support/source_maps.ts'

const harness = await startHarness()
const project = await harness.project()
const { send, issues, clear } = diagnosticsOf(project)
const { upload, shown } = sourceMapsOf(harness, project)
afterEach(async () => {
  await clear()
  await project.sql('delete from app.source_maps')
})

let app: Bundled
let map: string
beforeAll(async () => {
  app = await bundleApp()
  map = await readFile(app.map, 'utf8')
})

const wanted = [
  ['priceOfItem', 'src/cart.ts', 11],
  ['totalOfCart', 'src/cart.ts', 6],
  [expect.stringContaining('payForEverything'), 'src/main.ts', 6],
  [expect.any(String), 'src/main.ts', 10],
]
const sourcesOf = (report: any) =>
  report.frames
    .filter(({ source }: any) => source)
    .map(({ source }: any) => [source.function, source.file, source.line])

describe('the stack of a minified bundle', () => {
  const written = {
    'V8, as Chrome and Node write it': () => app.stack,
    Firefox: () =>
      placesOf(app)
        .map(({ name, line, column }) => `${name}@https://app.example/assets/main.js?v=1:${line}:${column}`)
        .join('\n'),
    'Safari, with a frame of its own': () =>
      [
        'map@[native code]',
        ...placesOf(app).map(
          ({ name, line, column }) => `${name}@https://app.example/assets/main.js:${line}:${column}`,
        ),
      ].join('\n'),
  }
  for (const [engine, stackOf] of Object.entries(written))
    test(`of ${engine} is shown in its sources`, async () => {
      expect(await upload('1.4.0', 'assets/main.js', map)).toMatchObject({ status: 201 })
      await send({ stack: stackOf(), app_version: '1.4.0' })
      const report = await shown()
      expect(sourcesOf(report)).toEqual(wanted)
      expect(report.stack).toBe(stackOf())
    })

  for (const [file, frame] of [
    [
      'index.android.bundle',
      (name: string, column: number) => `    at ${name} (address at index.android.bundle:1:${column - 1})`,
    ],
    ['main.jsbundle', (name: string, column: number) => `${name}@/var/containers/main.jsbundle:1:${column}`],
  ] as const)
    test(`of React Native in ${file} is shown in its sources`, async () => {
      expect(await upload('1.4.0', file, map)).toMatchObject({ status: 201 })
      await send({
        stack: placesOf(app)
          .map(({ name, column }) => frame(name, column))
          .join('\n'),
        app_version: '1.4.0',
      })
      expect(sourcesOf(await shown())).toEqual(wanted)
    })

  test('has the code around each place, and the raw frame beside it', async () => {
    await upload('1.4.0', 'main.js', map)
    await send({ stack: app.stack, app_version: '1.4.0' })
    const { frames, bundles } = await shown()
    const [first] = frames
    const place = placesOf(app)[0]
    expect(first).toMatchObject({
      function: 'p',
      line: 1,
      column: place?.column,
      file: expect.stringMatching(/main\.js$/),
    })
    expect(first.raw).toMatch(/^at p \(.*main\.js:1:\d+\)$/)
    expect(first.source.column).toBe(29)
    expect(first.source.code.map(({ line }: any) => line)).toEqual([6, 7, 8, 9, 10, 11, 12, 13, 14])
    expect(first.source.code[5]).toEqual({
      line: 11,
      text: "  if (item.price < 0) throw new RangeError('A price below zero')",
    })
    expect(bundles[0]).toEqual({ file: first.file, source_map: 'used' })
    expect(bundles.slice(1).every(({ source_map }: any) => source_map === 'missing')).toBe(true)
    expect(frames.at(-1).source).toBeNull()
  })

  test('is shown raw without a map of its version, and grouped the same with and without', async () => {
    await send({ stack: app.stack, app_version: '1.4.0' })
    await upload('1.4.0', 'main.js', map)
    await send({ stack: app.stack, app_version: '1.4.0' })
    await send({ stack: app.stack, app_version: '1.5.0', occurred_at: new Date(harness.now().getTime() + 1000) })
    await send({ stack: app.stack, occurred_at: new Date(harness.now().getTime() + 2000) })
    expect(await issues()).toMatchObject([{ count: 4 }])
    const report = await shown()
    expect([report.app_version, sourcesOf(report)]).toEqual([null, []])
    expect(report.bundles[0].source_map).toBe('missing')
  })

  test('takes the map with the longest path that the bundle ends with', async () => {
    await upload('1', 'main.js', mapOf({ sources: ['wrong.ts'] }))
    await upload('1', 'b/assets/main.js', mapOf({ sources: ['other.ts'] }))
    await upload('1', 'assets/main.js', map)
    await send({ stack: app.stack, app_version: '1' })
    expect(sourcesOf(await shown())).toEqual(wanted)
  })

  test('is shown by a map that took the place of another', async () => {
    await upload('1', 'main.js', mapOf())
    await send({ stack: app.stack, app_version: '1' })
    expect((await shown()).frames[0].source).toMatchObject({
      file: 'a.ts',
      line: 2,
      code: [{ text: 'one' }, { text: 'two' }],
    })
    expect(await upload('1', 'main.js', map)).toMatchObject({ status: 200 })
    expect(sourcesOf(await shown())).toEqual(wanted)
  })
})

test('names of functions come from the maps of Metro', async () => {
  // [line, column, name] of the beginning of each part, as numbers of one base64 digit each
  const parts = [
    [[1, 0, 0]],
    [[2, 0, 1]],
    [
      [3, 2, 2],
      [3, 9, 1],
    ],
    [[5, 1, 0]],
  ] as const
  const digit = (n: number) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef'[n < 0 ? -n * 2 + 1 : n * 2]
  let [line, name] = [1, 0]
  const groups = parts.map((group) => {
    let column = 0
    return group.map(([atLine, atColumn, atName], index) => {
      const numbers = [atColumn - column, atName - name, ...(index === 0 ? [atLine - line] : [])]
      column = atColumn
      line = atLine
      name = atName
      return numbers.map(digit).join('')
    })
  })
  const mappings = groups.map((group) => group.join(',')).join(';')
  const functions = [[{ names: ['<global>', 'outer', 'inner'], mappings }]]
  const places = [
    [0, 0, 0, 0],
    [1, 0, 1, 0],
    [2, 0, 2, 4],
    [3, 0, 2, 10],
    [4, 0, 9, 0],
  ] as const
  await upload(
    '1',
    'index.android.bundle',
    mapOf({ mappings: encode([places.map((place) => [...place])]), x_facebook_sources: functions }),
  )
  const stack = places.map(([column]) => `    at x (address at index.android.bundle:1:${column})`).join('\n')
  await send({ stack, app_version: '1' })
  const names = sourcesOf(await shown()).map(([one]: any) => one)
  expect(names).toEqual(['<global>', 'outer', 'inner', 'outer', '<global>'])
})

test('sections, as Metro writes them for development, are read', async () => {
  const section = (line: number, file: string) => ({
    offset: { line, column: 0 },
    map: JSON.parse(mapOf({ sources: [file] })),
  })
  await upload('1', 'index.bundle', JSON.stringify({ version: 3, sections: [section(0, 'a.ts'), section(1, 'b.ts')] }))
  await send({ stack: 'at x (http://localhost:8081/index.bundle?platform=ios:2:1)', app_version: '1' })
  expect(sourcesOf(await shown())).toEqual([['x', 'b.ts', 2]])
})

test('a report is found by its own issue alone', async () => {
  await send([{ fingerprint: 'a' }, { fingerprint: 'b' }])
  const [one, other] = await issues()
  const [{ id }] = (await project.admin.get(`/diagnostics/issues/${one.id}/reports`)).data
  expect((await project.admin.get(`/diagnostics/issues/${one.id}/reports/${id}`)).data).toMatchObject({
    id,
    frames: [],
    bundles: [],
  })
  expectRefusal(await project.admin.get(`/diagnostics/issues/${other.id}/reports/${id}`), 404, 'NOT_FOUND')
  expectRefusal(await project.admin.get(`/diagnostics/issues/${one.id}/reports/${randomUUID()}`), 404, 'NOT_FOUND')
})
