import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { bundleConsole } from '#server/console/bundle.ts'

/** What a browser loads of the console, packed as gzip packs it. */
const { files, metafile } = await bundleConsole()
const nameOf = (path: string) => path.split('/').at(-1) ?? ''
const sizes = new Map(files.map(({ name, bytes }) => [name, gzipSync(bytes).length]))
const outputs = new Map(Object.entries(metafile.outputs).map(([path, output]) => [nameOf(path), output]))
const [main = ''] = [...sizes.keys()].filter((name) => /^main-.*\.js$/.test(name))

/** A script with what it imports at once. */
const withImports = (name: string, seen = new Set<string>()): Set<string> => {
  if (seen.has(name)) return seen
  seen.add(name)
  for (const { path, kind } of outputs.get(name)?.imports ?? [])
    if (kind === 'import-statement') withImports(nameOf(path), seen)
  return seen
}
const first = withImports(main)
const packed = (names: Iterable<string>) => [...names].reduce((sum, name) => sum + (sizes.get(name) ?? 0), 0)

test('the first load is 300 KB at most, with the one style sheet', () => {
  const sheets = [...sizes.keys()].filter((name) => name.endsWith('.css'))
  expect(sheets).toHaveLength(1)
  expect(packed([...first, ...sheets])).toBeLessThan(300_000)
  expect(packed(first)).toBeGreaterThan(100_000)
})

test('a page is 160 KB more at most, and so is each part that it loads later', () => {
  const parts = [...outputs].filter(([name, { entryPoint }]) => entryPoint?.startsWith('console/src') && name !== main)
  expect(parts.length).toBeGreaterThan(60)
  const large = parts.flatMap(([name, { entryPoint }]) => {
    const size = packed([...withImports(name)].filter((part) => !first.has(part)))
    return size > 160_000 ? [`${entryPoint}: ${size}`] : []
  })
  expect(large).toEqual([])
})

test('two bundles at once, as the first requests of a server ask for, are both made', async () => {
  const [one, two] = await Promise.all([bundleConsole(), bundleConsole()])
  const namesOf = (bundle: typeof one) => bundle.files.map(({ name }) => name).sort()
  expect(namesOf(one)).toEqual([...files.map(({ name }) => name)].sort())
  expect(namesOf(two)).toEqual(namesOf(one))
})
