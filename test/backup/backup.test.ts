import { randomBytes, randomUUID } from 'node:crypto'
import { chmod, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { begin, download, missing, post, run, uploadFile } from '#test/support/backups.ts'
import { ask, createTestProject, endPrograms, endServer, startServer, temporaryFolder } from '#test/support/process.ts'
import { startS3 } from '#test/support/s3.ts'

afterAll(endPrograms, 60_000)

test('a backup under load has everything that was answered before it, and nothing that came after it', {
  timeout: 240_000,
}, async () => {
  const server = await startServer()
  const story = await createTestProject(server.url)
  const kept = randomBytes(300_000)
  const asset = await uploadFile(server.url, story, kept)
  const [before, during, after]: string[][] = [[], [], []]
  let into = before
  const posting = [1, 2, 3].map(async () => {
    for (;;) {
      const id = randomUUID()
      const list = into
      if (!(await post(server.url, story.user, id))) return
      // answered before the backup began, or sent after it had ended
      if (list === into && list !== during) list?.push(id)
      else during?.push(id)
    }
  })
  while ((before?.length ?? 0) < 60) await post(server.url, story.user, randomUUID())
  const file = join(await temporaryFolder(), 'all.tar.zst')
  into = during
  const done = await run('backup', { DATA_DIR: server.dataDir }, '--to', file)
  expect(done, done.output).toMatchObject({ code: 0 })
  expect(done.output).toContain('It holds secrets.key')
  into = after
  const late = await uploadFile(server.url, story, Buffer.from('late'))
  const { user } = story
  while ((after?.length ?? 0) < 30) await post(server.url, user, randomUUID())
  server.child.kill('SIGKILL')
  await Promise.all(posting)
  expect((await stat(file)).mode & 0o777).toBe(0o600)

  const folder = join(await temporaryFolder(), 'new')
  const restored = await run('restore', { DATA_DIR: folder }, '--from', file)
  expect(restored, restored.output).toMatchObject({ code: 0 })
  expect(restored.output).toContain('restored  1 projects')
  expect((await readdir(folder)).filter((name) => name.startsWith('draft-'))).toEqual([])
  const other = await startServer({ DATA_DIR: folder })
  // sessions hold, as the key is the same
  const me = await ask(other.url, 'GET', '/v1/client/users/me', undefined, user)
  expect(me).toMatchObject({ status: 200, body: { data: { id: story.userId } } })
  expect(await missing(other.url, user, before ?? [])).toBe(0)
  expect(await missing(other.url, user, after ?? [])).toBe(after?.length)
  expect((await download(other.url, story, asset))?.equals(kept)).toBe(true)
  expect(await download(other.url, story, late)).toBeNull()
  await endServer(other)
  // the former one goes on too, on what it had
  const again = await startServer({ DATA_DIR: server.dataDir })
  expect(await missing(again.url, user, [...(before ?? []), ...(during ?? []), ...(after ?? [])])).toBe(0)
  await endServer(again)
})

test('an archive restores any later moment, and all there is; the restored server archives on', {
  timeout: 300_000,
}, async () => {
  const around = await temporaryFolder()
  // the user that runs Postgres passes through it
  await chmod(around, 0o711)
  const archive = join(around, "wal's archive %p")
  const server = await startServer({ ARCHIVE_TO: archive })
  const story = await createTestProject(server.url)
  const { user } = story
  const [a, b, c] = [randomUUID(), randomUUID(), randomUUID()]
  expect(await post(server.url, user, a)).toBe(true)
  const backups = await temporaryFolder()
  const env = { DATA_DIR: server.dataDir, ARCHIVE_TO: archive, BACKUP_TO: `${backups}/` }
  const done = await run('backup', env)
  expect(done, done.output).toMatchObject({ code: 0 })
  const ended = new Date()
  expect(await post(server.url, user, b)).toBe(true)
  const moment = new Date()
  // the target is a whole millisecond, and includes what was committed in it
  while (Date.now() <= moment.getTime() + 1) await new Promise(setImmediate)
  expect(await post(server.url, user, c)).toBe(true)
  // an orderly stop archives what there is
  await endServer(server)
  expect((await readdir(archive)).length).toBeGreaterThan(0)

  const folder = await temporaryFolder()
  const restore = (name: string, ...args: string[]) =>
    run('restore', { DATA_DIR: join(folder, name), ARCHIVE_TO: archive, BACKUP_TO: backups }, ...args)
  const early = await restore('early', '--at', new Date(ended.getTime() - 3_600_000).toISOString())
  expect(early).toMatchObject({
    code: 1,
    output: expect.stringContaining('for an earlier moment restore an earlier backup'),
  })
  const never = await restore('x', '--at', '2999-01-01T00:00:00Z')
  expect(never).toMatchObject({ code: 1, output: expect.stringContaining('has not come yet') })
  const future = await restore('future', '--at', new Date().toISOString())
  expect(future).toMatchObject({ code: 1, output: expect.stringContaining('The archive ends before that moment') })
  expect(await restore('x', '--at', 'yesterday')).toMatchObject({
    code: 1,
    output: expect.stringContaining('--at is a moment'),
  })
  for (const name of ['early', 'future', 'x']) expect(await readdir(join(folder, name)).catch(() => [])).toEqual([])

  const later = await restore('later', '--at', moment.toISOString())
  expect(later, later.output).toMatchObject({ code: 0 })
  const one = await startServer({ DATA_DIR: join(folder, 'later'), ARCHIVE_TO: archive })
  expect(await missing(one.url, user, [a, b])).toBe(0)
  expect(await missing(one.url, user, [c])).toBe(1)
  await endServer(one)

  const latest = await restore('latest', '--at', 'latest')
  expect(latest, latest.output).toMatchObject({ code: 0 })
  const two = await startServer({ DATA_DIR: join(folder, 'latest') })
  expect(await missing(two.url, user, [a, b, c])).toBe(0)
  await endServer(two)
})

describe('what cannot be restored is refused, and leaves nothing', async () => {
  const server = await startServer()
  const story = await createTestProject(server.url)
  const folder = await temporaryFolder()
  const env = { DATA_DIR: server.dataDir }
  const at = (name: string) => join(folder, name)
  const identity = await run('backup', env, '--new-identity', at('identity'))
  const other = await run('backup', env, '--new-identity', at('other'))
  const recipient = identity.output.trim()
  const encrypted = await run('backup', env, '--to', at('secret.tar.zst.age'), '--recipient', recipient)
  const keyless = await run('backup', env, '--to', at('keyless.tar.zst'), '--without-key')
  const key = (await readFile(join(server.dataDir, 'secrets.key'), 'utf8')).trim()
  await endServer(server)

  const restore = async (args: readonly string[], more: Record<string, string> = {}) => {
    const target = join(await temporaryFolder(), 'target')
    const done = await run('restore', { DATA_DIR: target, ...more }, ...args)
    const left = await readdir(target).catch(() => [])
    return { ...done, left }
  }
  const refused = (text: string) => ({ code: 1, left: [], output: expect.stringContaining(text) })

  test('all of them were made', () => {
    for (const done of [identity, other, encrypted, keyless]) expect(done, done.output).toMatchObject({ code: 0 })
    expect(recipient).toMatch(/^age1[a-z0-9]{50,}$/)
    expect(encrypted.output).not.toContain('It holds secrets.key')
  })

  test('an encrypted one opens with its identity alone, and shows nothing without it', {
    timeout: 60_000,
  }, async () => {
    const from = ['--from', at('secret.tar.zst.age')]
    const bytes = await readFile(at('secret.tar.zst.age'))
    expect(bytes.includes('trellis.json') || bytes.includes('cluster/')).toBe(false)
    expect(await restore(from)).toMatchObject(refused('encrypted: name the file with its identity'))
    expect(await restore([...from, '--identity', at('other')])).toMatchObject(refused('None of the identities opens'))
    expect(await restore([...from, '--identity', at('keyless.tar.zst')])).toMatchObject(
      refused('holds no identity of age'),
    )
    expect(await restore([...from, '--identity', at('identity'), '--check'])).toMatchObject({
      code: 0,
      left: [],
      output: expect.stringContaining('whole     1 projects'),
    })
    expect((await restore([...from, '--identity', at('identity')])).code).toBe(0)
  })

  test('a key that is not that of the data, or none', { timeout: 60_000 }, async () => {
    const from = ['--from', at('keyless.tar.zst')]
    expect(await restore(from)).toMatchObject(refused('has no key in it: set SECRETS_KEY'))
    const wrong = randomBytes(32).toString('base64')
    expect(await restore(from, { SECRETS_KEY: wrong })).toMatchObject(refused('SECRETS_KEY lacks the key'))
    expect((await restore(from, { SECRETS_KEY: key })).code).toBe(0)
  })

  test('a changed byte, a missing end, and what is no backup', { timeout: 120_000 }, async () => {
    const bytes = await readFile(at('keyless.tar.zst'))
    const sealed = await readFile(at('secret.tar.zst.age'))
    const more = { SECRETS_KEY: key }
    const place = at('changed')
    for (const part of [0.2, 0.5, 0.9, 0.999]) {
      const changed = Buffer.from(bytes)
      const position = Math.floor(bytes.length * part)
      changed[position] = (changed[position] ?? 0) ^ 0x55
      await writeFile(place, changed)
      const done = await restore(['--from', place], more)
      expect(done, `${part}: ${done.output}`).toMatchObject({ code: 1, left: [] })
      expect(done.output).toMatch(/damaged|not whole|none of ours/)
      await writeFile(place, bytes.subarray(0, position))
      const cut = await restore(['--from', place], more)
      expect(cut, `${part}: ${cut.output}`).toMatchObject({ code: 1, left: [] })
      expect(cut.output).toMatch(/not whole|damaged/)
    }
    await writeFile(place, sealed.subarray(0, sealed.length - 70_000))
    expect(await restore(['--from', place, '--identity', at('identity')])).toMatchObject({ code: 1, left: [] })
    for (const text of ['', 'no backup', '{}'.repeat(50_000)]) {
      await writeFile(place, text)
      expect(await restore(['--from', place], more)).toMatchObject({ code: 1, left: [] })
    }
    expect(await restore(['--from', at('nothing')])).toMatchObject(refused('There is no'))
    expect(await restore(['--from', 'ftp://example.org/a'])).toMatchObject(
      refused('A backup is a file, a folder, or s3://'),
    )
    expect(await restore([])).toMatchObject(refused('Say from where'))
  })

  test('an occupied DATA_DIR, and a server of another', async () => {
    const from = ['--from', at('keyless.tar.zst')]
    const names = await readdir(server.dataDir)
    const occupied = await run('restore', { DATA_DIR: server.dataDir }, ...from)
    expect(occupied).toMatchObject({ code: 1, output: expect.stringContaining('is occupied') })
    expect(await readdir(server.dataDir)).toEqual(names)
    const target = await temporaryFolder()
    await writeFile(join(target, 'notes.txt'), 'mine')
    expect(await run('restore', { DATA_DIR: target }, ...from)).toMatchObject({
      code: 1,
      output: expect.stringContaining('is occupied (notes.txt)'),
    })
    const url = { DATABASE_URL: 'postgres://a:b@127.0.0.1:1/postgres', SECRETS_KEY: key }
    expect(await restore(from, url)).toMatchObject(refused('leave DATABASE_URL away'))
    expect(await run('backup', { DATA_DIR: server.dataDir, ...url }, '--to', at('no'))).toMatchObject({
      code: 1,
      output: expect.stringContaining('backed up by its own tools'),
    })
  })

  test('options that nobody means', async () => {
    const backup = (...args: string[]) => run('backup', env, ...args)
    expect(await backup()).toMatchObject({ code: 1, output: expect.stringContaining('Say where to') })
    expect(await backup('--to', at('b/'), '--keep', '0')).toMatchObject({
      code: 1,
      output: expect.stringContaining('--keep is a number'),
    })
    expect(await backup('--to', at('b/'), '--recipient', 'age1nonsense')).toMatchObject({
      code: 1,
      output: expect.stringContaining('is no recipient of age'),
    })
    expect(await backup('--to', at('keyless.tar.zst'))).toMatchObject({
      code: 1,
      output: expect.stringContaining('is there already'),
    })
    expect(await backup('--to', at('b/'), '--wrong')).toMatchObject({
      code: 1,
      output: expect.stringContaining('Usage: npm run backup'),
    })
    expect(await backup('--help')).toMatchObject({ code: 0, output: expect.stringContaining('Usage: npm run backup') })
    expect(await readdir(at('b')).catch(() => [])).toEqual([])
    expect(await run('backup', { DATA_DIR: at('nowhere') }, '--to', at('b/'))).toMatchObject({
      code: 1,
      output: expect.stringContaining('There are no databases here yet'),
    })
    expect(story.projectId).toMatch(/^[0-9a-f-]{36}$/)
  })
})

test('the newest backups of a folder and of a bucket are kept, with the segments that they need', {
  timeout: 240_000,
}, async () => {
  const s3 = await startS3()
  const archive = await temporaryFolder()
  const server = await startServer({ ARCHIVE_TO: archive })
  const story = await createTestProject(server.url)
  // not to be compressed, and more than one part of an upload
  for (let count = 0; count < 3; count += 1) await uploadFile(server.url, story, randomBytes(9_000_000))
  const folder = `${await temporaryFolder()}/daily/`
  const env = { DATA_DIR: server.dataDir, ARCHIVE_TO: archive }
  const url = new URL(s3.url)
  url.pathname += '/back ups/daily'
  try {
    for (const to of [folder, folder, url.href, url.href]) {
      // names differ by the second
      const second = new Date().toISOString().slice(0, 19)
      while (new Date().toISOString().slice(0, 19) === second) await new Promise((resolve) => setTimeout(resolve, 20))
      const done = await run('backup', env, '--to', to, '--keep', '1')
      expect(done, done.output).toMatchObject({ code: 0 })
    }
    const [name = '', ...others] = await readdir(folder)
    expect(others).toEqual([])
    const [key = '', ...further] = s3.objects.keys()
    expect(further).toEqual([])
    expect(key).toMatch(/^media\/back ups\/daily\/trellis-\d{8}T\d{6}Z-[0-9A-F]{24}\.tar\.zst$/)
    expect(s3.objects.get(key)?.bytes.length).toBeGreaterThan(27_000_000)
    const needed = key.slice(-32, -8)
    const segments = (await readdir(archive)).filter((segment) => /^[0-9A-F]{24}$/.test(segment))
    expect(segments.filter((segment) => segment < needed)).toEqual([])
    expect(name).toMatch(/^trellis-/)

    const target = join(await temporaryFolder(), 'target')
    const restored = await run('restore', { DATA_DIR: target }, '--from', url.href)
    expect(restored, restored.output).toMatchObject({ code: 0 })

    s3.isDown = true
    const failed = await run('backup', env, '--to', url.href)
    expect(failed.code).toBe(1)
    s3.isDown = false
    expect([...s3.objects.keys()]).toEqual([key])
  } finally {
    await endServer(server)
    await s3.stop()
  }
})

test('a backup that is killed leaves nothing in Postgres, and a name that says so', { timeout: 120_000 }, async () => {
  const server = await startServer()
  const story = await createTestProject(server.url)
  await uploadFile(server.url, story, randomBytes(20_000_000))
  const file = join(await temporaryFolder(), 'killed.tar.zst')
  const { child, ended } = await begin('backup', { DATA_DIR: server.dataDir }, ['--to', file])
  while (!(await stat(`${file}.part`).catch(() => null))) await new Promise((resolve) => setTimeout(resolve, 5))
  child.kill('SIGKILL')
  expect((await ended).code).toBe('SIGKILL')
  expect(await stat(file).catch(() => null)).toBeNull()
  const second = await run('backup', { DATA_DIR: server.dataDir }, '--to', file)
  expect(second).toMatchObject({ code: 1, output: expect.stringContaining('.part is there') })
  await rm(`${file}.part`)
  const third = await run('backup', { DATA_DIR: server.dataDir }, '--to', file)
  expect(third, third.output).toMatchObject({ code: 0 })
  expect(await post(server.url, story.user, randomUUID())).toBe(true)
  await endServer(server)
})
