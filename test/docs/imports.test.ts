import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const root = new URL('../../', import.meta.url)

/** Each file of the server, with the files of the server that it imports. */
const files = readdirSync(new URL('server/', root), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => {
    const text = readFileSync(new URL(`server/${name}`, root), 'utf8')
    const imports = [...text.matchAll(/from '#server\/([^']+)'/g)].map(([, found = '']) => found)
    return { name, text, imports, folder: folderOf(name) }
  })

function folderOf(name: string): string {
  return name.includes('/') ? name.slice(0, name.indexOf('/')) : ''
}

/** Imports from one folder to another, as `from: to`. */
const found = (is: (from: string, to: string) => boolean): string[] =>
  files.flatMap(({ name, folder, imports }) =>
    imports.filter((to) => is(folder, folderOf(to))).map((to) => `${name}: ${to}`),
  )

// what stands beside the folders of subjects
const below = ['', 'json', 'database', 'telemetry', 'providers', 'http']

test('imports run one way: routes, folders of subjects, http, database, json', () => {
  expect(found((from, to) => from === 'json' && to !== 'json')).toEqual([])
  expect(found((from, to) => from === 'database' && !['', 'json', 'database', 'telemetry'].includes(to))).toEqual([])
  expect(found((from, to) => from === 'http' && !below.includes(to))).toEqual([])
  // the REST door adapts routes, as a client of another API calls them
  expect(found((from, to) => to === 'routes' && from !== 'routes' && from !== 'rest')).toEqual([])
})

test('only what starts the server imports the fleet', () => {
  const starting = ['member.ts', 'serve.ts', 'services.ts', 'start.ts']
  expect(
    files.filter(({ name, text }) => text.includes("'#fleet/") && !starting.includes(name)).map(({ name }) => name),
  ).toEqual([])
})

test('no route imports the routes of another file', () => {
  const declares = new Set(files.filter(({ text }) => / = area\(/.test(text)).map(({ name }) => name))
  const routes = files.filter(({ folder }) => folder === 'routes')
  expect(
    routes.flatMap(({ name, imports }) => imports.filter((to) => declares.has(to)).map((to) => `${name}: ${to}`)),
  ).toEqual([])
})
