import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { personalToken } from '#test/support/accounts.ts'
import { type Machine, machine, readable, writeJson } from '#test/support/cli.ts'
import { type Project, startHarness } from '#test/support/harness.ts'
import { createTestProject, endPrograms, programEnvironment, startServer } from '#test/support/process.ts'
import { startRecorder } from '#test/support/recorder.ts'

/** Plans and pushes of files, and queries beside the server. */
const harness = await startHarness()
const owner = await harness.developer()
const route = await startRecorder(harness.url)
const { token } = await personalToken(owner)
afterAll(endPrograms)

const env = { TRELLIS_URL: route.url, TRELLIS_TOKEN: token }
const kind = 'segments'
let project: Project
let here: Machine
/** The folder of a project, as it was pulled. */
beforeEach(async () => {
  Object.assign(route, { before: () => undefined, missing: null })
  project = await harness.project({ developer: owner })
  await project.admin.post('/segments', { key: 'pros', name: 'Pros', rules: { and: [] } })
  here = await machine()
  const made = await here.run(['init', '--project', project.id], { env })
  expect(made.stderr).toBe('')
  route.requests.length = 0
})
/** What the route of imports was sent. */
const imports = () =>
  route.requests
    .filter(({ path }) => path.includes('/promotion/import?'))
    .map(({ path, text }) => ({ dry_run: path.endsWith('?dry_run=true'), ...JSON.parse(text) }))
const nameThere = async () => (await project.admin.get('/segments/pros')).data?.name
const file = () => join(here.folder, `definitions/${kind}/pros.json`)
const change = async (fields: object) => {
  const definition = JSON.parse(await readFile(file(), 'utf8'))
  await writeFile(file(), JSON.stringify({ ...definition, ...fields }))
}
const rename = (name: string) => change({ name })

describe('a plan', () => {
  test('of files that were pulled is clean', async () => {
    const { code, stdout } = await here.run(['plan', '--check'], { env })
    expect([code, stdout]).toEqual([0, expect.stringContaining('Nothing to do')])
    expect(imports()).toEqual([{ document: expect.objectContaining({ version: 1, left_out: [] }), dry_run: true }])
  })

  test('shows each field, in colours on a terminal, and changes nothing', async () => {
    await change({ name: 'Professionals', description: 'Paying\u001b[2J' })
    await writeJson(join(here.folder, `definitions/${kind}/new.json`), { name: 'New', rules: { and: [] } })
    const { code, stdout } = await here.run(['plan'], { env })
    expect(code).toBe(0)
    expect(stdout).toContain(`~ ${kind}/pros\n    ~ name: "Pros" -> "Professionals"`)
    expect(stdout).toContain('    ~ description: null -> "Paying\\u001b[2J"')
    expect(stdout).toContain(`+ ${kind}/new\n    + name: "New"`)
    expect(stdout).toContain('1 to create, 1 to change, 0 to delete.')
    expect((await here.run(['plan', '--check'], { env })).code).toBe(8)
    const shown = here.show(['plan'], { env })
    expect(await shown.ended).toBe(0)
    expect(shown.text()).toContain('\u001b[31m"Pros"\u001b[39m')
    expect(shown.text()).toContain('\u001b[32m"Professionals')
    expect(shown.text()).not.toContain(token)
    expect(imports().map(({ dry_run }) => dry_run)).toEqual([true, true, true])
    expect(await nameThere()).toBe('Pros')
  })

  test('of files that are no definitions names every one of them and what is wrong, and ends with 2', async () => {
    const at = (...parts: string[]) => join(here.folder, ...parts)
    await writeJson(at('collections', 'notes.json'), { columns: [], colour: 'red', realtime: 'yes' })
    await writeJson(at('definitions', 'roles', 'a.json'), { name: 7 })
    await writeJson(at('definitions', 'nothing', 'b.json'), {})
    for (const args of [['plan'], ['push', '--yes']]) {
      const { code, stderr } = await here.run(args, { env })
      expect(code, stderr).toBe(2)
      expect(stderr.trim().split('\n')).toEqual([
        'trellis: 4 problems in the files:',
        '  definitions/nothing/b.json: nothing is not a kind that is copied.',
        '  collections/notes.json: colour is not a field of this kind.',
        '  collections/notes.json: realtime has a value of the wrong type.',
        '  definitions/roles/a.json: name has a value of the wrong type.',
      ])
    }
    const inJson = await here.run(['plan', '--json'], { env })
    expect(JSON.parse(inJson.stderr).error).toMatchObject({
      code: 'USAGE',
      exit_code: 2,
      details: { problems: { length: 4 } },
    })
    // one is a sentence
    for (const name of ['roles', 'nothing']) await rm(at('definitions', name), { recursive: true })
    await writeJson(at('collections', 'notes.json'), { columns: [], colour: 'red' })
    const one = await here.run(['plan'], { env })
    expect([one.code, one.stderr.trim()]).toEqual([
      2,
      'trellis: collections/notes.json: colour is not a field of this kind.',
    ])
    // what no parser takes is told of all files too, before the server is asked
    await writeFile(at('collections', 'notes.json'), '{')
    await writeFile(at('collections', 'more.json'), '[]')
    const unread = await here.run(['plan'], { env })
    expect(unread.code).toBe(2)
    expect(unread.stderr).toContain('collections/more.json must hold an object.')
    expect(unread.stderr).toContain('collections/notes.json is not JSON')
  })

  test('with --prune names what no push deletes, and does not say that nothing differs', async () => {
    await project.admin.post('/collections', { name: 'notes', columns: [{ name: 'title', type: 'text' }] })
    expect((await here.run(['plan'], { env })).stdout).toContain('Nothing to do: the project is what the files say.')
    const pruned = await here.run(['plan', '--prune'], { env })
    expect([pruned.code, pruned.stdout]).toEqual([
      0,
      expect.stringContaining('= collections/notes is not in the files, and stays'),
    ])
    expect(pruned.stdout).not.toContain('the project is what the files say')
    const { kept } = JSON.parse((await here.run(['plan', '--prune', '--json'], { env })).stdout)
    expect(kept).toEqual([{ kind: 'collections', key: 'notes' }])
    await rm(file())
    const more = await here.run(['plan', '--prune'], { env })
    expect(more.stdout).toContain(`- ${kind}/pros`)
    expect(more.stdout).toContain('1 to delete.')
  })

  test('after the push of definitions that were written by hand is clean', async () => {
    const columns = [
      { name: 'title', type: 'text', max_length: 200 },
      { name: 'rank', type: 'integer', min: 0, default: 1 },
      { name: 'parent', type: 'uuid', references: { collection: 'notes' } },
    ]
    const written: Record<string, object> = {
      'collections/notes': { columns, indexes: [{ columns: ['rank'] }] },
      'definitions/levels/levels': {
        levels: [
          { level: 1, xp_required: 0 },
          { level: 2, xp_required: 10 },
        ],
      },
      'definitions/streaks/daily': { name: 'Daily', qualifying_event: 'practised' },
      'definitions/onboarding_flows/first': { steps: [{ id: 'a', type: 'info' }] },
      'definitions/flags/dark': { name: 'Dark', value_type: 'boolean', default_value: false, off_value: false },
      'definitions/push_templates/hello': { message: { title: 'Hello', body: 'You' } },
    }
    for (const [name, definition] of Object.entries(written))
      await writeJson(join(here.folder, `${name}.json`), definition)
    const pushed = await here.run(['push', '--yes'], { env })
    expect([pushed.code, pushed.stderr]).toEqual([0, ''])
    const { code, stdout } = await here.run(['plan', '--check'], { env })
    expect([code, stdout]).toEqual([0, expect.stringContaining('Nothing to do')])
    // what does differ is still told
    await writeJson(join(here.folder, 'collections/notes.json'), { columns: [{ ...columns[0], max_length: 100 }] })
    const other = await here.run(['plan', '--json'], { env })
    expect([other.code, JSON.parse(other.stdout).blocked]).toMatchObject([9, [{ code: 'CHANGE_NOT_ADDITIVE' }]])
  })

  test('tells what a push would be refused', async () => {
    await writeJson(join(here.folder, `definitions/${kind}/long.json`), { name: 'x'.repeat(300), rules: { and: [] } })
    const { code, stdout } = await here.run(['plan', '--json'], { env })
    expect([code, JSON.parse(stdout).blocked]).toMatchObject([9, [{ key: 'long', code: 'VALIDATION_ERROR' }]])
  })

  test('sends the digits of numbers as they are in the files', async () => {
    await writeFile(join(here.folder, `definitions/${kind}/exact.json`), '{"n": 12345678901234567890.10}')
    await here.run(['plan'], { env })
    expect(route.requests.map(({ text }) => text).join('\n')).toContain('{"n":12345678901234567890.10}')
  })

  test('that is blocked ends with 9, and nothing can be pushed', async () => {
    const rules = { and: [{ source: 'segment', op: 'in', segment_id: 'nowhere' }] }
    await writeJson(join(here.folder, `definitions/${kind}/leaning.json`), { name: 'Dependent', rules })
    await rename('Professionals')
    const planned = await here.run(['plan'], { env })
    expect([planned.code, planned.stdout]).toEqual([9, expect.stringContaining('! ')])
    const pushed = await here.run(['push', '--yes', '--json'], { env })
    expect([pushed.code, JSON.parse(pushed.stderr).error.code]).toEqual([9, 'PLAN_BLOCKED'])
    expect(await nameThere()).toBe('Pros')
  })

  test('on a server without the route says so', async () => {
    route.missing = /promotion\/import/
    const { code, stderr } = await here.run(['plan'], { env })
    expect([code, stderr]).toEqual([1, expect.stringContaining('SERVER_TOO_OLD')])
  })
})

describe('a push', () => {
  test('asks on a terminal, and applies what it has shown', async () => {
    await rename('Professionals')
    const no = here.show(['push'], { env })
    await no.shows('Only yes goes on:')
    no.type('y\r')
    expect(await no.ended).toBe(1)
    expect(await nameThere()).toBe('Pros')
    const yes = here.show(['push'], { env })
    await yes.shows('Only yes goes on:')
    yes.type('yes\r')
    expect(await yes.ended).toBe(0)
    expect(readable(yes.text())).toContain('Pushed 1 change to')
    expect(await nameThere()).toBe('Professionals')
    const [planned, applied] = imports().slice(-2)
    expect([planned.dry_run, applied.dry_run, applied.confirm]).toEqual([true, false, applied.plan_hash])
    expect((await here.run(['plan', '--check'], { env })).code).toBe(0)
    expect((await here.run(['push', '--yes'], { env })).stdout).toContain('Nothing to do')
  })

  test('without a terminal wants --yes, or the hash of the plan, which must still be the one', async () => {
    await rename('Professionals')
    expect((await here.run(['push'], { env })).code).toBe(2)
    const { plan_hash } = JSON.parse((await here.run(['plan', '--json'], { env })).stdout)
    const other = await here.run(['push', '--plan', 'another', '--json'], { env })
    expect([other.code, JSON.parse(other.stderr).error.code]).toEqual([6, 'PLAN_CHANGED'])
    expect(await nameThere()).toBe('Pros')
    const { code, stdout } = await here.run(['push', '--plan', plan_hash, '--json'], { env })
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ project: project.id, plan_hash, pushed: 1, status: 'succeeded' })
  })

  test('ends with 6 when the project changes between plan and push', async () => {
    await rename('Professionals')
    route.before = async ({ path }) => {
      if (path.endsWith('?dry_run=false')) await project.admin.patch('/segments/pros', { name: 'Meanwhile' })
    }
    const { code, stderr } = await here.run(['push', '--yes', '--json'], { env })
    expect([code, JSON.parse(stderr).error.code]).toEqual([6, 'PLAN_CHANGED'])
    expect(await nameThere()).toBe('Meanwhile')
  })

  test('deletes with --prune alone', async () => {
    await rm(file())
    expect((await here.run(['push', '--yes'], { env })).stdout).toContain('Nothing to do')
    const { code, stdout } = await here.run(['push', '--yes', '--prune'], { env })
    expect([code, stdout]).toEqual([0, expect.stringContaining(`- ${kind}/pros`)])
    expect((await project.admin.get('/segments/pros')).status).toBe(404)
  })
})

describe('with --kind', () => {
  /** A store with an offer and a league, as files; then all three kinds differ from the project. */
  const shop = async () => {
    const made = async (path: string, body: object) =>
      expect((await project.admin.post(path, body)).status, path).toBe(201)
    await made('/currencies', { code: 'COINS', name: 'Coins' })
    await made('/catalog', { key: 'potion', name: 'Potion', item_type: 'consumable' })
    await made('/stores', { key: 'main', name: 'Main' })
    await made('/stores/main/offers', { key: 'potion', catalog_item_key: 'potion' })
    expect((await here.run(['pull', '--yes'], { env })).code).toBe(0)
    const store = join(here.folder, 'definitions/stores/main.json')
    const definition = JSON.parse(await readFile(store, 'utf8'))
    definition.offers[0].prices = [{ currency_code: 'COINS', price: 10, original_price: null }]
    await writeJson(store, definition)
    await rename('Professionals')
    route.requests.length = 0
  }

  test('a push changes definitions of these kinds alone, stores with their offers too', async () => {
    await shop()
    const planned = await here.run(['plan', '--kind', 'stores', '--check'], { env })
    expect(planned.code, planned.stderr).toBe(8)
    expect(planned.stdout).toContain('~ stores/main\n    + offers[0].prices[0]: {')
    expect(planned.stdout).toContain('0 to create, 1 to change, 0 to delete.')
    const pushed = await here.run(['push', '--kind', 'stores', '--yes'], { env })
    expect(pushed.code, pushed.stderr).toBe(0)
    for (const { kinds, document } of imports()) {
      expect([kinds, Object.keys(document.definitions)]).toEqual([['stores'], ['stores']])
    }
    const [offer] = (await project.admin.get('/stores/main')).data.offers
    expect(offer.prices).toEqual([{ currency_code: 'COINS', price: 10, original_price: null }])
    expect(await nameThere()).toBe('Pros')
    const both = await here.run(['plan', '--kind', 'stores, segments'], { env })
    expect(both.stdout).toContain('~ segments/pros')
    expect(both.stdout).not.toContain('stores/main')
  })

  test('deletions with --prune are of these kinds alone', async () => {
    await shop()
    await rm(join(here.folder, 'definitions/stores/main.json'))
    await rm(file())
    expect((await here.run(['push', '--kind', 'stores', '--prune', '--yes'], { env })).code).toBe(0)
    expect((await project.admin.get('/stores/main')).status).toBe(404)
    expect(await nameThere()).toBe('Pros')
  })

  test('a pull writes and deletes files of these kinds alone', async () => {
    await shop()
    await project.admin.patch('/stores/main', { name: 'Main street' })
    await project.admin.patch('/segments/pros', { name: 'Pros there' })
    await writeJson(join(here.folder, 'definitions/stores/gone.json'), { name: 'Gone', offers: [] })
    await writeJson(join(here.folder, 'definitions/segments/new.json'), { name: 'New', rules: { and: [] } })
    const { code, stdout, stderr } = await here.run(['pull', '--kind', 'stores', '--yes'], { env })
    expect(code, stderr).toBe(0)
    expect(stdout.trim().split('\n')).toEqual([
      '- definitions/stores/gone.json',
      '~ definitions/stores/main.json',
      '2 files written.',
    ])
    expect(JSON.parse(await readFile(file(), 'utf8')).name).toBe('Professionals')
    expect(JSON.parse(await readFile(join(here.folder, 'definitions/stores/main.json'), 'utf8')).name).toBe(
      'Main street',
    )
    expect((await here.run(['pull', '--kind', 'stores', '--check'], { env })).code).toBe(0)
  })

  test('a kind that neither side has ends with 2, and nothing is written or pushed', async () => {
    for (const [args, said] of [
      [['pull', '--kind', 'segment', '--yes'], 'Did you mean segments?'],
      [['plan', '--kind', 'segment'], 'segment is not a kind'],
      [['push', '--kind', 'segment', '--yes'], 'segment is not a kind'],
      [['plan', '--kind', '../segments'], 'is no kind of definitions'],
      [['plan', '--kind', 'segments,'], 'is no kind of definitions'],
    ] as const) {
      const { code, stderr } = await here.run([...args], { env })
      expect(code, stderr).toBe(2)
      expect(stderr).toContain(said)
    }
    expect(await nameThere()).toBe('Pros')
  })
})

test('sql reads beside a server of its own, and writes with --write alone', async () => {
  const server = await startServer()
  const { projectId, userId } = await createTestProject(server.url)
  const { run } = await machine()
  const more = {
    cwd: process.cwd(),
    env: { ...programEnvironment, DATA_DIR: server.dataDir, TRELLIS_PROJECT: projectId },
  }
  const read = await run(['sql', 'select id, 1.10 as exact from app.users', '--json'], more)
  expect(read.stderr).toBe('')
  expect(JSON.parse(read.stdout)).toEqual([{ command: 'SELECT', count: 1, rows: [{ id: userId, exact: '1.10' }] }])
  const write = `update app.users set avatar_url = E'A\\x1b[31mB'`
  const refused = await run(['sql', write], more)
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('--write')])
  const escaping = await run(['sql', `commit; ${write}`], more)
  expect(escaping.code).toBe(1)
  expect((await run(['sql', `${write}; ${write}`, '--write'], more)).code).toBe(0)
  const shown = await run(['sql', '-'], { ...more, input: 'select avatar_url from app.users' })
  expect([shown.code, shown.stdout]).toEqual([0, 'avatar_url\nA [31mB\n'])
  const unknown = await run(['sql', 'select 1', '--project', crypto.randomUUID()], more)
  expect([unknown.code, unknown.stderr]).toEqual([5, expect.stringContaining('no project')])
  const elsewhere = await run(['sql', 'select 1', '--project', projectId])
  expect([elsewhere.code, elsewhere.stderr]).toEqual([2, expect.stringContaining('--installation')])
})
