/** An app's first flight without a network: texts in two languages, rows that two devices write, and an error that is told after the landing. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { build, stop } from 'esbuild'
import { root } from '#server/root.ts'
import {
  createApp,
  createContent,
  createDiagnostics,
  createSync,
  memoryStore,
  memorySyncStore,
  type Store,
} from '../../sdk/src/index.ts'
import { type Ask, createAsk, DemoError, developerAndProject, type Headers, print, shown, until } from './world.ts'

const release = '1.4.0'
const run = promisify(execFile)

/** The app's own code, in which the wrong key of the piano is pressed. */
const source = `type Lesson = { notes: string[] }

const nextNote = (lesson: Lesson, played: number): string => {
  const note = lesson.notes[played]
  if (note === undefined) throw new RangeError('There is no note ' + played)
  return note.toUpperCase()
}

export const playLesson = () => {
  const lesson = { notes: ['c', 'd', 'e'] }
  return [0, 1, 2, 3].map((played) => nextNote(lesson, played))
}
`

type Built = { readonly folder: string; readonly playLesson: () => unknown }

/** A bundle as an app ships it, minified, with its map beside it. */
const buildApp = async (): Promise<Built> => {
  const folder = await mkdtemp(join(tmpdir(), 'trellis-demo-app-'))
  await mkdir(join(folder, 'src'))
  await writeFile(join(folder, 'src/lesson.ts'), source)
  const outfile = join(folder, 'dist/main.js')
  await build({
    entryPoints: [join(folder, 'src/lesson.ts')],
    ...{ outfile, bundle: true, format: 'esm', minify: true, sourcemap: 'external', logLevel: 'error' },
  })
  await stop()
  return { folder, ...((await import(pathToFileURL(outfile).href)) as Pick<Built, 'playLesson'>) }
}

const writeTexts = async (ask: Ask, admin: string, developer: Headers) => {
  print('\n3. She writes the welcome of her app in English and in German, and publishes both.')
  const entry = { key: 'welcome', content_type: 'screen', fields: { title: 'Have a good flight' } }
  await ask('POST', `${admin}/content`, entry, developer)
  await ask('PUT', `${admin}/content/welcome/locales/de`, { fields: { title: 'Guten Flug' } }, developer)
  for (const locale of ['en', 'de'])
    await ask('POST', `${admin}/content/welcome/locales/${locale}/publish`, {}, developer, true)
}

const defineRows = async (ask: Ask, admin: string, developer: Headers) => {
  print('\n4. And defines what users write down of their practice: rows that devices keep and sync.')
  const columns = [
    { name: 'piece', type: 'text' },
    { name: 'minutes', type: 'integer' },
  ]
  await ask('POST', `${admin}/collections`, { name: 'practice', columns, sync: true }, developer, true)
  print('   practice: piece, minutes')
}

const pushMaps = async (url: string, admin: string, developer: Headers, folder: string) => {
  print(`\n5. Her build uploads the source map of release ${release}.`)
  print(`   trellis sourcemaps push --release ${release} --dir dist`)
  const { stdout } = await run(
    process.execPath,
    [join(root, 'cli/src/main.ts'), 'sourcemaps', 'push', '--release', release, '--dir', 'dist'],
    {
      cwd: folder,
      env: {
        ...{ PATH: process.env['PATH'], HOME: folder, TRELLIS_URL: url },
        TRELLIS_TOKEN: String(developer['authorization']).replace('Bearer ', ''),
        TRELLIS_PROJECT: admin.split('/').at(-1),
      },
    },
  )
  for (const line of stdout.trim().split('\n')) print(`   ${line}`)
}

type Practised = { id: string; piece: string; minutes: number }
const practiceOf = (sync: ReturnType<typeof createSync>) => ({ sync, rows: sync.collection<Practised>('practice') })
const piecesOf = async ({ rows }: ReturnType<typeof practiceOf>) =>
  (await rows.rows()).map(({ piece, minutes }) => `${piece} ${minutes} min`).sort()

/** A phone: what it stores outlives the app, its network goes and comes, and uncaught errors reach a handler as in React Native. */
const createPhone = (url: string, key: string) => {
  const store: Store = memoryStore()
  const rows = memorySyncStore()
  let isOnline = true
  let handler: (error: unknown, isFatal?: boolean) => void = () => undefined
  Object.assign(globalThis, {
    ErrorUtils: { getGlobalHandler: () => handler, setGlobalHandler: (next: typeof handler) => (handler = next) },
  })
  const throughNetwork = (...args: Parameters<typeof fetch>) =>
    isOnline ? fetch(...args) : Promise.reject(new TypeError('There is no network.'))
  return {
    turn(on: boolean) {
      isOnline = on
    },
    crash: (error: unknown) => handler(error, true),
    /** Another device of the same user, which stays at home. */
    tablet: () =>
      practiceOf(createSync(createApp({ url, key, store }), { store: memorySyncStore(), delay: 3_600_000 })),
    start() {
      const app = createApp({ url, key, store, fetch: throughNetwork as never, retries: 0 })
      const texts = { en: createContent(app, { locale: 'en' }), de: createContent(app, { locale: 'de' }) }
      const practice = practiceOf(createSync(app, { store: rows, delay: 3_600_000 }))
      return {
        app,
        texts,
        practice,
        diagnostics: createDiagnostics(app, { uncaught: true, appVersion: release, delay: 3_600_000 }),
      }
    },
  }
}
type Phone = ReturnType<typeof createPhone>

const titles = async ({ texts }: ReturnType<Phone['start']>) => {
  const found: unknown[] = []
  for (const content of [texts.en, texts.de]) {
    await content.load({ force: true })
    found.push(content.get('welcome')?.fields['title'])
  }
  print(`   ${found.join(' / ')}`)
  if (String(found) !== 'Have a good flight,Guten Flug') throw new DemoError('The texts are not those of the entry.')
}

const fly = async (phone: Phone, playLesson: () => unknown) => {
  print('\n6. At the gate the app starts: a user signs in, and both languages are loaded.')
  const before = phone.start()
  await before.app.ensureSignedIn()
  await titles(before)
  await before.practice.sync.now()
  before.practice.sync.close()
  before.diagnostics.close()

  print('\n7. In the air there is no network. The app starts again, and its texts are there.')
  phone.turn(false)
  const flying = phone.start()
  await titles(flying)
  const tablet = phone.tablet()
  await flying.practice.rows.insert({ piece: 'Scales', minutes: 20 })
  await tablet.rows.insert({ piece: 'Minuet', minutes: 15 })
  await tablet.sync.now()
  print(`   on the phone: ${await piecesOf(flying.practice)}; on the tablet at home: ${await piecesOf(tablet)}`)

  print('\n8. A lesson crashes. The error is kept on the phone.')
  try {
    playLesson()
  } catch (error) {
    print(`   ${String(error)}`)
    phone.crash(error)
  }
  await until('The keeping of the error', async () => ((await flying.diagnostics.size()) === 1 ? true : undefined))
  flying.diagnostics.close()
  flying.practice.sync.close()

  print('\n9. Landed. The app starts once more, and sends what was kept.')
  phone.turn(true)
  const landed = phone.start()
  const { accepted, left } = await landed.diagnostics.flush()
  print(`   ${accepted} report accepted, ${left} left`)
  if (accepted !== 1 || left !== 0) throw new DemoError('The report was not sent.')
  landed.diagnostics.close()
  await landed.practice.sync.now()
  await tablet.sync.now()
  const both = [await piecesOf(landed.practice), await piecesOf(tablet)]
  print(`   on the phone: ${both[0]?.join(', ')}; on the tablet: ${both[1]?.join(', ')}`)
  if (both.some((pieces) => String(pieces) !== 'Minuet 15 min,Scales 20 min'))
    throw new DemoError('The devices do not have the same rows.')
  landed.practice.sync.close()
  tablet.sync.close()
}

type Issue = { readonly id: string; readonly title: string; readonly count: number; readonly app_versions: string[] }
type Source = { readonly file: string; readonly line: number; readonly function: string; readonly code: CodeLine[] }
type CodeLine = { readonly line: number; readonly text: string }
type Report = {
  readonly stack: string
  readonly frames: readonly { readonly raw: string; readonly source: Source | null }[]
}

const look = async (ask: Ask, url: string, admin: string, developer: Headers) => {
  print('\n10. The developer opens the issue in her console: not the minified line, but her own code.')
  const [issue] = await ask<Issue[]>('GET', `${admin}/diagnostics/issues?status=open`, undefined, developer, true)
  if (!issue) throw new DemoError('There is no issue.')
  print(`   ${url}/console/projects/${admin.split('/').at(-1)}/diagnostics/${issue.id}`)
  print(shown({ title: issue.title, count: issue.count, app_versions: issue.app_versions }))
  const of = `${admin}/diagnostics/issues/${issue.id}/reports`
  const [newest] = await ask<{ id: string }[]>('GET', of, undefined, developer, true)
  const { frames } = await ask<Report>('GET', `${of}/${newest?.id}`, undefined, developer, true)
  const [frame] = frames
  const here = frame?.source
  if (issue.count !== 1 || here?.file !== 'src/lesson.ts' || here.function !== 'nextNote')
    throw new DemoError('The frame is not shown in its source.')
  print(`   ${frame?.raw.replace(/\(.*\//, '(…/')}`)
  print(`   ${here.function} in ${here.file}:${here.line}`)
  for (const { line, text } of here.code)
    print(`   ${line === here.line ? '>' : ' '} ${String(line).padStart(3)} ${text}`)
}

export const runOffline = async (url: string): Promise<void> => {
  const ask = createAsk(url)
  const { developer, admin, clientKey } = await developerAndProject(ask)
  const { folder, playLesson } = await buildApp()
  try {
    await writeTexts(ask, admin, developer)
    await defineRows(ask, admin, developer)
    await pushMaps(url, admin, developer, folder)
    await fly(createPhone(url, clientKey), playLesson)
    await look(ask, url, admin, developer)
  } finally {
    Reflect.deleteProperty(globalThis, 'ErrorUtils')
    await rm(folder, { recursive: true, force: true })
  }
}
