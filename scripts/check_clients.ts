import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { loadAreas } from '#server/http/areas.ts'
import { openApi } from '#server/http/openapi.ts'
import { root } from '#server/root.ts'
import { installedTools } from './tools.ts'

/**
 * `npm run check:clients` gives the OpenAPI document to those who read it: two linters with their recommended rules, and three generators of clients, whose
 * code must compile strictly. It ends with 1 and their words where one of them is not content. The first run installs them.
 */
const tools = await installedTools()
const program = (name: string) => join(tools, 'node_modules', name)
const programs = {
  spectral: program('@stoplight/spectral-cli/dist/index.js'),
  types: program('openapi-typescript/bin/cli.js'),
  hey: program('@hey-api/openapi-ts/bin/run.js'),
  orval: program('orval/dist/bin/orval.mjs'),
  redocly: join(root, 'node_modules/@redocly/cli/bin/cli.js'),
  tsc: join(root, 'node_modules/typescript/bin/tsc'),
}

/** Paths that a parameter would fit too; an id is a uuid, and never the word that the other path has in its place. */
const given = /^Paths should resolve unambiguously.*(webhooks\/deliveries|friends\/requests)/

const compilerOptions = {
  strict: true,
  noEmit: true,
  target: 'ES2022',
  module: 'ESNext',
  moduleResolution: 'bundler',
  lib: ['ES2022', 'DOM', 'DOM.Iterable'],
  types: [],
}

const folder = await mkdtemp(join(tmpdir(), 'trellis-clients-'))
const file = join(folder, 'openapi.json')

type Result = { readonly isDone: boolean; readonly text: string }

const run = (name: keyof typeof programs, ...words: string[]): Promise<Result> =>
  promisify(execFile)(process.execPath, [programs[name], ...words], {
    cwd: folder,
    maxBuffer: 2 ** 26,
    env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', NO_COLOR: '1' },
  }).then(
    ({ stdout }) => ({ isDone: true, text: stdout }),
    ({ stdout, stderr }: { stdout: string; stderr: string }) => ({ isDone: false, text: stdout + stderr }),
  )

const problems: string[] = []
const report = (who: string, found: readonly string[]) => {
  console.log(`${who}: ${found.length === 0 ? 'nothing to say' : `${found.length} problems`}`)
  problems.push(...found.map((problem) => `${who}: ${problem}`))
}

const lines = (text: string) => text.split('\n').filter((line) => line.trim() !== '')

type Found = { readonly code: string; readonly message: string; readonly path: readonly string[] }

const spectral = async () => {
  await writeFile(join(folder, 'rules.json'), JSON.stringify({ extends: ['spectral:oas'] }))
  const { isDone, text } = await run(
    'spectral',
    'lint',
    file,
    '-r',
    'rules.json',
    '-f',
    'json',
    '--fail-severity',
    'hint',
  )
  const found = text.trim().startsWith('[') ? (JSON.parse(text.slice(0, text.lastIndexOf(']') + 1)) as Found[]) : null
  report(
    'spectral',
    found ? found.map(({ code, message, path }) => `${code} at ${path.join('/')}: ${message}`) : isDone ? [] : [text],
  )
}

const redocly = async () => {
  const { text } = await run(
    'redocly',
    'lint',
    file,
    '--format',
    'json',
    '--extends',
    'recommended',
    '--max-problems',
    '1000',
  )
  const found = JSON.parse(text.slice(text.indexOf('{'))).problems as { ruleId: string; message: string }[]
  report(
    'redocly',
    found.filter(({ message }) => !given.test(message)).map(({ ruleId, message }) => `${ruleId}: ${message}`),
  )
}

const generate = async (name: 'types' | 'hey' | 'orval', ...words: string[]) => {
  const { isDone, text } = await run(name, ...words)
  report(`${name}, generating`, isDone ? [] : [text])
}

const compile = async (name: string) => {
  const project = join(folder, `tsconfig.${name}.json`)
  await writeFile(project, JSON.stringify({ compilerOptions, include: [name] }))
  const { isDone, text } = await run('tsc', '-p', project)
  report(`${name}, compiled strictly`, isDone ? [] : lines(text))
}

try {
  await writeFile(file, JSON.stringify(await openApi(await loadAreas(), 'https://api.trellis.test')))
  await writeFile(
    join(folder, 'orval.config.mjs'),
    `export default { trellis: { input: { target: ${JSON.stringify(file)} }, output: { target: 'orval/trellis.ts', client: 'fetch', mode: 'tags-split' } } }`,
  )
  await redocly()
  await spectral()
  await generate('types', file, '-o', 'types/schema.ts')
  await generate('hey', '-i', file, '-o', 'hey')
  await generate('orval', '--config', 'orval.config.mjs')
  for (const name of ['types', 'hey', 'orval']) await compile(name)
} finally {
  await rm(folder, { recursive: true, force: true })
}
for (const problem of problems.slice(0, 50)) console.error(problem)
// the areas keep timers of their own
process.exit(problems.length > 0 ? 1 : 0)
