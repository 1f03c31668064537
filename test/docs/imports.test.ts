import { glob, readFile } from 'node:fs/promises'
import { posix } from 'node:path'
import { build } from 'esbuild'
import { beforeAll, expect, test } from 'vitest'
import { root } from '#server/root.ts'

/** Each source file with what it imports at its start, types too; `values` are the imports that are left when it runs. */
const files = new Map<string, { readonly text: string; readonly imports: Set<string>; readonly values: Set<string> }>()

const statement = /^(?:import|export) (?:[^'"]*? from )?'([#.][^']*)'/gm

const place = (from: string, name: string): string =>
  name.startsWith('#') ? name.slice(1) : posix.join(posix.dirname(from), name)

beforeAll(async () => {
  for await (const name of glob('{server,fleet,workers,scripts,cli,console,sdk,test,bench,proofs}/**/*.{ts,tsx}', {
    cwd: root,
  })) {
    // a fixture's pages of the console import what stands beside them in the program that they are copied into
    if (/node_modules|\.d\.ts$|\/generated\/|^test\/fixtures\/\w+\/console\//.test(name)) continue
    const text = await readFile(`${root}${name}`, 'utf8')
    files.set(name, {
      text,
      imports: new Set([...text.matchAll(statement)].map(([, found = '']) => place(name, found))),
      values: new Set(),
    })
  }
  const { metafile } = await build({
    stdin: { contents: [...files.keys()].map((name) => `import './${name}'`).join('\n'), resolveDir: root },
    absWorkingDir: root,
    bundle: true,
    packages: 'external',
    external: ['*.node'],
    plugins: [
      {
        name: 'own',
        setup: ({ onResolve }) => onResolve({ filter: /^#/ }, ({ path }) => ({ path: `${root}${path.slice(1)}` })),
      },
    ],
    loader: { '.css': 'empty' },
    write: false,
    metafile: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'silent',
  })
  for (const [name, { imports }] of Object.entries(metafile.inputs))
    for (const { path, kind } of imports)
      if (kind === 'import-statement' && files.has(path)) files.get(name)?.values.add(path)
})

/** The files of a way from one file back to it, or null. */
const circle = (next: (name: string) => Iterable<string>): readonly string[] | null => {
  const done = new Set<string>()
  const way: string[] = []
  const visit = (name: string): readonly string[] | null => {
    if (way.includes(name)) return [...way.slice(way.indexOf(name)), name]
    if (done.has(name)) return null
    way.push(name)
    for (const to of next(name)) {
      const found = files.has(to) ? visit(to) : null
      if (found) return found
    }
    way.pop()
    done.add(name)
    return null
  }
  for (const name of files.keys()) {
    const found = visit(name)
    if (found) return found
  }
  return null
}

/** `server/http/app.ts` is of `server/http`, `server/start.ts` of `server`, `fleet/move/copy.ts` of `fleet`. */
const roomOf = (name: string): string => {
  const [part = '', folder = '', ...rest] = name.split('/')
  return part === 'server' && rest.length > 0 ? `server/${folder}` : part
}

/** Imports of one room by another, as `from: to`. */
const found = (is: (from: string, to: string, name: string) => boolean): string[] =>
  [...files].flatMap(([name, { imports }]) =>
    [...imports].filter((to) => is(roomOf(name), roomOf(to), name)).map((to) => `${name}: ${to}`),
  )

test('no file imports itself in a circle, neither by values nor by types', () => {
  expect(circle((name) => files.get(name)?.values ?? [])).toBeNull()
  expect(circle((name) => files.get(name)?.imports ?? [])).toBeNull()
  // the pattern misses no import that is there when the program runs
  expect(files.get('server/start.ts')?.values).toContain('fleet/fleet.ts')
  expect([...files].flatMap(([, { imports, values }]) => [...values].filter((to) => !imports.has(to)))).toEqual([])
})

const server = (...folders: string[]) => ['server', ...folders.map((folder) => `server/${folder}`)]

test('imports of the server run one way: routes, folders of subjects, http, database, json', () => {
  expect(found((from, to) => from === 'server/json' && to !== 'server/json')).toEqual([])
  const belowDatabase = server('json', 'database', 'telemetry')
  expect(found((from, to) => from === 'server/database' && !belowDatabase.includes(to))).toEqual([])
  // what stands beside the folders of subjects
  const belowHttp = [...belowDatabase, ...server('providers', 'http')]
  expect(found((from, to) => from === 'server/http' && !belowHttp.includes(to))).toEqual([])
  expect(found((from, to) => to === 'server/routes' && from.startsWith('server') && from !== 'server/routes')).toEqual(
    [],
  )
})

test('scripts and what starts the server or a worker use the fleet, and nobody uses scripts', () => {
  const starting = ['server/member.ts', 'server/serve.ts', 'server/start.ts']
  expect(found((from, to, name) => from.startsWith('server') && to === 'fleet' && !starting.includes(name))).toEqual([])
  expect(
    found((from, to) => from === 'fleet' && ['server/routes', 'server/rest', 'workers', 'scripts'].includes(to)),
  ).toEqual([])
  expect(found((from, to) => from === 'workers' && ['server/routes', 'server/rest', 'scripts'].includes(to))).toEqual(
    [],
  )
  expect(
    found((from, to, name) => from.startsWith('server') && to === 'workers' && name !== 'server/start.ts'),
  ).toEqual([])
  expect(found((from, to) => to === 'scripts' && !['scripts', 'test', 'bench', 'proofs'].includes(from))).toEqual([])
})

test('no route imports the routes of another file', () => {
  const declares = new Set([...files].filter(([, { text }]) => / = area\(/.test(text)).map(([name]) => name))
  expect(
    found((from, _to, name) => from === 'server/routes' && declares.has(name)).filter((one) =>
      declares.has(one.split(': ')[1] ?? ''),
    ),
  ).toEqual([])
})
