import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { personalToken } from '#test/support/accounts.ts'
import { type Machine, machine } from '#test/support/cli.ts'
import { contentOf } from '#test/support/content.ts'
import { type Project, startHarness } from '#test/support/harness.ts'
import { meetingBehind } from '#test/support/transaction.ts'
import { folderOf } from '../../cli/src/content_files.ts'

const harness = await startHarness()
const owner = await harness.developer()
const { token } = await personalToken(owner)
const env = { TRELLIS_URL: harness.url, TRELLIS_TOKEN: token }
let project: Project
let here: Machine
let of: ReturnType<typeof contentOf>
beforeEach(async () => {
  project = await harness.project({ developer: owner })
  of = contentOf(project)
  here = await machine()
  expect((await here.run(['init', '--project', project.id], { env })).stderr).toBe('')
})

const run = (...args: string[]) => here.run(['content', ...args], { env })
const read = (file: string) => readFile(join(here.folder, 'content', file), 'utf8')
const write = async (file: string, text: string) => {
  const at = join(here.folder, 'content', file)
  await mkdir(dirname(at), { recursive: true })
  await writeFile(at, text)
}
const done = async (answer: Promise<{ code: number; stdout: string; stderr: string }>) => {
  const { code, stdout, stderr } = await answer
  expect([code, stderr], stdout).toEqual([0, ''])
  return stdout
}

test('a pull writes one file for each language, and what is pushed of them becomes a version', async () => {
  await of.create('welcome', { z: 1, a: { text: 'Hi' }, big: 0 })
  await project.admin.put(
    '/content/welcome/locales/en',
    '{"fields":{"z":1.5,"a":{"text":"Hi"},"big":12345678901234567890}}',
  )
  await of.save('welcome', 'pt-BR', { a: 'Olá' })
  await done(run('pull'))
  expect(await read('article/welcome/en.json')).toBe(
    '{\n  "a": {\n    "text": "Hi"\n  },\n  "big": 12345678901234567890,\n  "z": 1.5\n}\n',
  )
  expect(JSON.parse(await read('versions.json'))).toEqual({ 'article/welcome/en': 2, 'article/welcome/pt-BR': 1 })
  expect(await done(run('push'))).toContain('Nothing to push.')
  expect(await done(run('pull', '--check'))).toContain('The files are what')

  await write('article/welcome/pt-BR.json', '{"a": "Oi"}')
  await write('article/welcome/de.json', '{"a": "Hallo"}')
  await write('page/About.Us/fr.json', '{"title": "À propos"}')
  await rename(join(here.folder, 'content/page/About.Us'), join(here.folder, 'content/page', folderOf('About.Us')))
  await write(`page/${folderOf('About.Us')}/en.json`, '{"title": "About"}')
  expect((await run('push', '--check')).code).toBe(8)
  expect((await run('push')).code).toBe(2)
  expect(await done(run('push', '--yes'))).toContain('Pushed 4 languages.')
  expect((await of.get('welcome')).locales).toMatchObject({
    'pt-BR': { version: 2, fields: { a: 'Oi' }, status: 'draft' },
    de: { version: 1, fields: { a: 'Hallo' } },
    en: { version: 2 },
  })
  expect(await of.get('About.Us')).toMatchObject({
    ...{ content_type: 'page', default_locale: 'en' },
    locales: { en: { version: 1 }, fr: { fields: { title: 'À propos' } } },
  })
  expect((await done(run('pull', '--yes'))).trim().split('\n').at(-1)).toBe('4 files written.')
  expect(await done(run('push'))).toContain('Nothing to push.')
})

test('Markdown files have one field as their text, and stay Markdown', async () => {
  const body = '# Title\n\n---\nText: "quoted"\n'
  await of.create('post', { body, title: 'A: "b"', tags: ['x'], 'odd name:': null })
  await of.save('post', 'de', { title: 'ohne' })
  await done(run('pull', '--markdown', 'body'))
  expect(await read('article/post/en.md')).toBe(
    `---\n$body: "body"\n"odd name:": null\ntags: ["x"]\ntitle: "A: \\"b\\""\n---\n${body}\n`,
  )
  expect(await read('article/post/de.json')).toContain('ohne')
  expect(await done(run('push'))).toContain('Nothing to push.')
  expect(await done(run('pull', '--check'))).toContain('The files are what')
  await write('article/post/fr.md', '---\n$body: "body"\ntitle: Sans guillemets\r\n---\r\nBonjour\n')
  await done(run('push', '--yes', '--publish'))
  expect((await of.get('post')).locales.fr).toMatchObject({
    ...{ status: 'published', published_version: 1 },
    fields: { title: 'Sans guillemets', body: 'Bonjour' },
  })
  // a field that is no text any more is no Markdown
  await of.save('post', 'fr', { body: 7 })
  await done(run('pull', '--yes'))
  expect((await readdir(join(here.folder, 'content/article/post'))).sort()).toEqual(['de.json', 'en.md', 'fr.json'])
})

test('what was saved in the project since the pull is not overwritten, unless that is said', async () => {
  await of.create('a', { n: 1 })
  await of.create('b', { n: 1 })
  await done(run('pull'))
  await of.save('a', 'en', { n: 'of somebody else' })
  await write('article/a/en.json', '{"n": "mine"}')
  await write('article/b/en.json', '{"n": 2}')
  const refused = await run('push', '--yes', '--json')
  expect([refused.code, JSON.parse(refused.stderr).error.code]).toEqual([6, 'CONTENT_CHANGED'])
  expect((await of.get('b')).locales.en.version).toBe(1)
  await done(run('push', '--yes', '--locale', 'de'))
  await done(run('push', '--yes', '--force'))
  expect([(await of.get('a')).locales.en, (await of.get('b')).locales.en]).toMatchObject([
    { version: 3, fields: { n: 'mine' } },
    { version: 2, fields: { n: 2 } },
  ])
})

test('of two who push at once one is told which languages the other has saved', async () => {
  await of.create('a', { n: 1 })
  await of.create('b', { n: 1 })
  const other = await machine()
  await other.run(['init', '--project', project.id], { env })
  const push = async (from: Machine, text: string) => {
    await done(from.run(['content', 'pull'], { env }))
    const files: Record<string, string> = { 'article/a/en.json': text, 'article/a/de.json': text }
    files[`article/new/${text === '{"n": 2}' ? 'en' : 'fr'}.json`] = text
    for (const [file, content] of Object.entries(files)) {
      await mkdir(dirname(join(from.folder, 'content', file)), { recursive: true })
      await writeFile(join(from.folder, 'content', file), content)
    }
    return () => from.run(['content', 'push', '--yes', '--json'], { env })
  }
  const pushes = [await push(here, '{"n": 2}'), await push(other, '{"n": 3}')]
  const hold = 'lock table app.content_entries in share row exclusive mode'
  const answers = await meetingBehind(project.database, hold, () => pushes.map((begin) => begin()))
  const codes = answers.map(({ code }) => code).sort()
  // each was first somewhere, or one was everywhere
  expect([
    [0, 6],
    [6, 6],
  ]).toContainEqual(codes)
  for (const { code, stderr } of answers) {
    if (code === 0) continue
    const { error } = JSON.parse(stderr)
    expect(error.code).toBe('CONTENT_CHANGED')
    expect(error.message).toMatch(/content\/article\/(a\/en|a\/de|new\/(en|fr))\.json/)
  }
  // nothing is overwritten: one version of the two was taken
  const { locales } = await of.get('a')
  expect([locales.en.version, locales.de.version]).toEqual([2, 1])
  expect(Object.keys((await of.get('new')).locales)).toHaveLength(1)
})

test('a pull of a type or a language leaves the other files; a whole one deletes what is gone, after asking', async () => {
  await of.create('a', { n: 1 })
  await of.create('b', { n: 1 }, { content_type: 'page' })
  await of.save('b', 'de', { n: 2 })
  await done(run('pull', '--type', 'page', '--locale', 'DE'))
  expect(await readdir(join(here.folder, 'content'))).toEqual(['page', 'versions.json'])
  await done(run('pull'))
  await project.admin.delete('/content/b')
  await done(run('pull', '--type', 'page'))
  expect((await run('pull')).code).toBe(2)
  expect((await run('pull', '--check')).code).toBe(8)
  await done(run('pull', '--yes'))
  expect(await readdir(join(here.folder, 'content/page/b'))).toEqual([])
  expect(await read('article/a/en.json')).toContain('1')
})

test('files that are no content, and links, are told and nothing is sent', async () => {
  await of.create('a', { n: 1 })
  await done(run('pull'))
  for (const [file, text] of [
    ['article/a/de.json', '{'],
    ['article/a/de.json', '[]'],
    ['article/a/de.md', 'no front'],
    ['article/a/de.md', '---\ntitle: x\n---\ntext'],
    ['article/a/en_US.json', '{}'],
    ['article/a b/en.json', '{}'],
    ['article/a/en.md', '---\n$body: "b"\n---\nx'],
    ['page/a/de.json', '{}'],
  ] as const) {
    await write(file, text)
    expect([(await run('push', '--yes')).code, file, text]).toEqual([2, file, text])
    await rm(join(here.folder, 'content', file))
  }
  await rm(join(here.folder, 'content/article a'), { force: true, recursive: true })
  await rm(join(here.folder, 'content/article/a b'), { force: true, recursive: true })
  await symlink('/etc', join(here.folder, 'content/article/etc'))
  expect((await run('push', '--yes')).code).toBe(2)
  expect((await run('pull', '--yes')).code).toBe(2)
  expect((await of.get('a')).version).toBe(1)
})

test.each(['a', 'A', 'AB', '.', '..', '.a', 'a.', 'con', 'CON', 'nul.x', 'aux', 'a-b_c.d', 'Z.'])(
  'the key %s has a folder of its own',
  async (key) => {
    const folder = folderOf(key)
    expect(folder).toMatch(/^[a-z0-9_~-][a-z0-9_.~-]*$/)
    expect(folder).not.toMatch(/^(con|prn|aux|nul|com\d|lpt\d)(\.|$)|\.$/)
    await of.create(key, { n: 1 })
    await done(run('pull'))
    expect(await readdir(join(here.folder, 'content/article'))).toEqual([folder])
    expect(await done(run('push'))).toContain('Nothing to push.')
  },
)
