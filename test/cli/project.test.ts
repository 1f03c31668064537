import { mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { readable, signedIn, writeJson } from '#test/support/cli.ts'
import { startHarness } from '#test/support/harness.ts'
import { endPrograms } from '#test/support/process.ts'

/** The definitions of a project as files, and what else the command shows of a project; against a real server. */
const harness = await startHarness()
const owner = await harness.developer()
const project = await harness.project({ developer: owner })
afterAll(endPrograms)

const treeOf = async (folder: string): Promise<Record<string, string>> => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
  const texts = files.sort().map(async (file) => [file.slice(folder.length + 1), await readFile(file, 'utf8')])
  return Object.fromEntries(await Promise.all(texts))
}
const linked = async () => {
  const made = await signedIn(harness, owner)
  await writeJson(join(made.folder, 'trellis.json'), { version: 1, url: harness.url, project: project.id })
  return made
}

await project.admin.post('/streaks', { key: 'daily', name: 'Daily', qualifying_event: 'practised' })
await project.admin.post('/config', { key: 'a.b', value: 1, value_type: 'number' })
await project.sql(`insert into app.onboarding_flows (name, steps) values ('Ünïque flow / one', '[]')`)
// digits that JavaScript would lose
await project.sql(`update app.config_keys set value = '12345678901234567890.10' where key = 'a.b'`)

describe('init and link', () => {
  test('make a folder with the definitions of a project as files, and link one that was made without', async () => {
    const { folder, run } = await signedIn(harness, owner)
    const made = await run(['init', 'app', '--project', project.id])
    expect(made.stderr).toBe('')
    expect(made.code).toBe(0)
    const tree = await treeOf(join(folder, 'app'))
    expect(JSON.parse(tree['trellis.json'] ?? '')).toEqual({ version: 1, url: harness.url, project: project.id })
    const files = Object.keys(tree).filter((file) => file.startsWith('definitions/'))
    expect(
      files.some((file) => /^definitions\/streaks?\w*\/daily\.json$/.test(file)),
      files.join(),
    ).toBe(true)
    const named = files.find((file) => /unique-flow-one~[0-9a-f]{8}\.json$/.test(file)) ?? ''
    expect(JSON.parse(tree[named] ?? '').$key).toBe('Ünïque flow / one')
    const config = files.find((file) => file.endsWith('/a.b.json')) ?? ''
    expect(tree[config]).toContain('12345678901234567890.10')
    expect((await run(['init', 'app'])).code).toBe(2)

    expect((await run(['init', 'other'])).code).toBe(0)
    const cwd = join(folder, 'other')
    const names = await run(['link', 'Nobodys'], { cwd })
    expect(names.code).toBe(5)
    expect((await run(['link'], { cwd })).code).toBe(2)
    expect((await run(['link', project.id], { cwd })).code).toBe(0)
    expect(JSON.parse((await treeOf(cwd))['trellis.json'] ?? '').project).toBe(project.id)
  })

  test('a person chooses the project by its number', async () => {
    const { folder, run, show } = await signedIn(harness, owner)
    await run(['init'])
    const shown = show(['link'])
    const text = await shown.shows('Which project?')
    const [, number = ''] = new RegExp(`(\\d+)  [^\\n]*${project.id}`).exec(text) ?? []
    shown.type(`${number}\r`)
    expect(await shown.ended).toBe(0)
    expect(JSON.parse((await treeOf(folder))['trellis.json'] ?? '').project).toBe(project.id)
  })

  test('nothing is made when the project is not there', async () => {
    const { folder, run } = await signedIn(harness, owner)
    const refused = await run(['init', 'app', '--project', crypto.randomUUID()])
    expect([refused.code, await readdir(folder)]).toEqual([5, []])
  })
})

describe('pull', () => {
  test('writes the same files for the same project, and asks before it changes or deletes one', async () => {
    const { folder, run, show } = await linked()
    expect((await run(['pull'])).code).toBe(0)
    const first = await treeOf(folder)
    expect((await run(['pull', '--check'])).code).toBe(0)
    const again = await run(['pull', '--json'])
    expect(JSON.parse(again.stdout)).toMatchObject({ changes: [], written: true })
    expect(await treeOf(folder)).toEqual(first)

    const [file = ''] = Object.keys(first).filter((one) => one.endsWith('/daily.json'))
    await writeFile(join(folder, file), '{"name": "Mine"}')
    const extra = join(folder, 'definitions/segments/mine.json')
    await writeJson(extra, {})
    expect((await run(['pull', '--check'])).code).toBe(8)
    const refused = await run(['pull'])
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('--yes')])
    const no = show(['pull'])
    await no.shows('Only yes goes on:')
    no.type('no\r')
    expect(await no.ended).toBe(2)
    expect(await readFile(join(folder, file), 'utf8')).toBe('{"name": "Mine"}')
    const yes = show(['pull'])
    expect(await yes.shows('Only yes goes on:')).toContain(`- definitions/segments/mine.json`)
    yes.type('yes\r')
    expect(await yes.ended).toBe(0)
    expect(await treeOf(folder)).toEqual(first)
  })

  test('leaves what links lead to alone, at every level, and so do plan and push', async () => {
    const { folder, home, run } = await linked()
    expect((await run(['pull'])).code).toBe(0)
    const outside = join(home, 'outside')
    const stands = { 'precious.json': '{"secret": 1}', 'kinds/settings.json': '{}', 'kinds/streaks/y.json': '{}' }
    for (const [file, text] of Object.entries(stands)) {
      await mkdir(join(outside, file, '..'), { recursive: true })
      await writeFile(join(outside, file), text)
    }
    const places: [string, string][] = [
      ['collections', outside],
      ['definitions', join(outside, 'kinds')],
      ['definitions/streaks', join(outside, 'kinds/streaks')],
      ['definitions/flags', join(outside, 'kinds/streaks')],
      ['definitions/streaks/daily.json', join(outside, 'precious.json')],
      ['definitions/streaks/another.json', join(outside, 'precious.json')],
      ['definitions/streaks/dangling.json', join(outside, 'nothing')],
    ]
    for (const [place, target] of places) {
      const there = join(folder, place)
      const aside = join(home, 'aside')
      await rename(there, aside).catch(() => undefined)
      await symlink(target, there)
      const before = await treeOf(folder)
      for (const words of [
        ['pull', '--yes'],
        ['pull', '--check'],
        ['plan'],
        ['plan', '--prune'],
        ['push', '--yes', '--prune'],
      ]) {
        const ended = await run([...words, '--json'])
        expect([ended.code, JSON.parse(ended.stderr).error], `${words} ${place}`).toMatchObject([
          2,
          { code: 'OUTSIDE_FOLDER', message: expect.stringContaining(`${place} is a link`) },
        ])
      }
      expect(await treeOf(outside)).toEqual(stands)
      expect(await treeOf(folder)).toEqual(before)
      await rm(there)
      await rename(aside, there).catch(() => undefined)
    }
    expect((await project.admin.get('/streaks/daily')).status).toBe(200)
    // the folder itself may be reached by a link
    await symlink(folder, join(home, 'linked'))
    expect((await run(['pull', '--check'], { cwd: join(home, 'linked') })).code).toBe(0)
  })

  test('takes a file whose name differs in capitals for another one, and loses none', async () => {
    const { folder, run } = await linked()
    await run(['pull'])
    await rename(join(folder, 'definitions/streaks/daily.json'), join(folder, 'definitions/streaks/DAILY.json'))
    expect((await run(['pull', '--yes'])).code).toBe(0)
    expect(await readdir(join(folder, 'definitions/streaks'))).toEqual(['daily.json'])
  })

  test('files that are no definitions are said by name', async () => {
    const { folder, run } = await linked()
    const cases: [string, string, string][] = [
      ['definitions/segments/a.json', '{', 'a.json is not JSON'],
      ['definitions/segments/a.json', '[]', 'must hold an object'],
      ['definitions/segments/a~00000000.json', '{}', 'needs "$key"'],
      ['definitions/segments/a.json', '{"$key": 1}', 'must be text'],
      ['definitions/Wrong-Kind/a.json', '{}', 'no kind'],
    ]
    for (const [file, text, words] of cases) {
      await mkdir(join(folder, file, '..'), { recursive: true })
      await writeFile(join(folder, file), text)
      const { code, stderr } = await run(['plan'])
      expect([file, code, stderr]).toEqual([file, 2, expect.stringContaining(words)])
      await rm(join(folder, 'definitions'), { recursive: true })
    }
    await writeJson(join(folder, 'definitions/segments/a.json'), {})
    await writeJson(join(folder, 'definitions/segments/b.json'), { $key: 'a' })
    expect((await run(['plan'])).stderr).toContain('define the same')
  })
})

test('types come as TypeScript and as JSON Schema, to stdout or into a file', async () => {
  const { folder, run } = await linked()
  const collection = { name: 'notes', columns: [{ name: 'body', type: 'text' }] }
  const made = await project.admin.post('/collections', collection)
  expect(made.status, made.text).toBe(201)
  const shown = await run(['types'])
  expect(shown.stdout).toContain('interface Collections')
  expect((await run(['types', '--out', 'src/trellis.d.ts'])).code).toBe(0)
  expect(await readFile(join(folder, 'src/trellis.d.ts'), 'utf8')).toContain('notes')
  expect(JSON.parse((await run(['types', '--format', 'json-schema'])).stdout).notes).toBeDefined()
})

test('events are shown as they come, on a terminal without what it would interpret, and one a line as JSON', async () => {
  const { run, show } = await linked()
  const user = await project.user()
  const send = (event_name: string, properties: object = {}) => user.post('/client/events', { event_name, properties })
  await send('before')
  const shown = show(['events', 'tail', '--interval', '1', '--count', '3'])
  await shown.shows('before')
  await send('after', { words: '\u001b[2Jgone\u009b2J' })
  const text = await shown.shows('after')
  expect(text).toContain(user.id)
  expect(shown.text()).not.toContain('\u001b[2Jgone')
  expect(shown.text()).not.toContain('\u009b')
  await send('last')
  expect(await shown.ended).toBe(0)
  const lines = await run(['events', 'tail', '--json', '--lines', '2', '--count', '2'])
  expect(
    lines.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).event_name),
  ).toEqual(['after', 'last'])
  const named = await run(['events', 'tail', '--json', '--event', 'before', '--count', '1'])
  expect(JSON.parse(named.stdout).event_name).toBe('before')
  expect((await run(['events', 'tail', '--lines', 'many'])).code).toBe(2)
})

test('a user is found by id, mail address and external id', async () => {
  const { run } = await linked()
  const user = await project.user()
  await project.admin.patch(`/users/${user.id}`, { external_id: 'crm-7', avatar_url: 'A\u001b[31mb' })
  for (const wanted of [user.id, 'crm-7']) {
    const { code, stdout } = await run(['users', 'show', wanted, '--json'])
    expect([code, JSON.parse(stdout).id]).toEqual([0, user.id])
  }
  const shown = await run(['users', 'show', 'crm-7'])
  expect(shown.stdout).toContain('crm-7')
  expect(shown.stdout).not.toContain('\u001b')
  const missing = await run(['users', 'show', 'crm-8'])
  expect(missing.code).toBe(5)
  expect((await run(['users', 'show', crypto.randomUUID()])).code).toBe(5)
})

test('open prints the address where there is no terminal, and opens it where there is one', async () => {
  const { home, run, show } = await linked()
  expect((await run(['open', 'device'])).stdout).toBe(`${harness.url}/device\n`)
  expect((await run(['open'])).stdout).toMatch(/\/(docs|console)\n$/)
  const browser = join(home, 'browser.sh')
  await writeFile(browser, `#!/bin/sh\necho "$1" > '${home}/opened'\n`, { mode: 0o755 })
  const shown = show(['open', 'docs'], { env: { BROWSER: browser } })
  expect(await shown.ended).toBe(0)
  await expect.poll(() => readFile(join(home, 'opened'), 'utf8').catch(() => '')).toBe(`${harness.url}/docs\n`)
  expect(readable(shown.text())).toContain('Opened')
})

test('projects are listed and created; the keys of a new one are shown once', async () => {
  const { run } = await signedIn(harness, owner)
  const listed = await run(['projects', 'list'])
  expect([listed.code, listed.stdout]).toEqual([0, expect.stringContaining(project.id)])
  const made = await run(['projects', 'create', 'Piano lessons', '--environment', 'development', '--json'])
  expect(made.code, made.stderr).toBe(0)
  const { project: created, api_keys } = JSON.parse(made.stdout)
  const shown = await owner.get(`/admin/projects/${created.id}`)
  expect(shown.data).toMatchObject({ name: 'Piano lessons', environment: 'development' })
  expect([api_keys.client.key, api_keys.server.key]).toEqual([
    expect.stringMatching(/^\w+/),
    expect.stringMatching(/^\w+/),
  ])
  const again = await run(['projects', 'list', '--json'])
  expect(JSON.parse(again.stdout).map(({ id }: { id: string }) => id)).toContain(created.id)
  expect(again.stdout).not.toContain(api_keys.server.key)
  const words = await run(['projects', 'create', 'Another one'])
  expect(words.stdout).toMatch(
    /Created Another one[\s\S]+client key[\s\S]+server key[\s\S]+trellis init FOLDER --project/,
  )
  expect((await run(['projects', 'create'])).code).toBe(2)
  expect((await run(['projects', 'create', 'x', '--environment', 'staging'])).code).toBe(2)
  expect((await run(['projects', 'create', 'a\nb', '--json'])).code).toBe(1)
})
