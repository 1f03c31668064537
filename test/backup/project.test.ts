import { randomBytes, randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Entry, readArchive, writeArchive } from '#fleet/backup/archive.ts'
import { createSecrets } from '#server/secrets.ts'
import { runScript } from '#test/support/admin.ts'
import { begin, download, missing, post, run, uploadFile } from '#test/support/backups.ts'
import { databaseOf, startTwoServers } from '#test/support/moving.ts'
import { ask, createTestProject, endPrograms, endServer, startServer, temporaryFolder } from '#test/support/process.ts'
import { startS3 } from '#test/support/s3.ts'

const { server, settings, sql, cluster, other, secretsKey } = await startTwoServers({
  WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8',
})
const env = { DATA_DIR: settings.DATA_DIR, SECRETS_KEY: settings.SECRETS_KEY }
afterAll(async () => {
  await endPrograms()
  await other.stop()
}, 60_000)

type Story = Awaited<ReturnType<typeof createTestProject>>

const adminOf = ({ projectId }: Story) => `/v1/admin/projects/${projectId}`
const made = async (story: Story, path: string, body: unknown) => {
  const answer = await ask(server.url, 'POST', adminOf(story) + path, body, story.developer)
  expect(answer.status, JSON.stringify(answer.body)).toBe(201)
  return answer.body.data
}
const note = async (story: Story, title: string) =>
  (await ask(server.url, 'POST', '/v1/client/collections/notes', { title }, story.user)).status
/** Until it is answered: a server that others keep busy may say 503 first, and the same id counts once. */
const posted = (story: Story, id: string) => expect.poll(() => post(server.url, story.user, id)).toBe(true)
const titles = async (user: Record<string, string>) =>
  (await ask(server.url, 'GET', '/v1/client/collections/notes?order=title', undefined, user)).body.data.map(
    ({ title }: { title: string }) => title,
  )
const databases = async () =>
  (
    await sql('own', 'postgres', `select datname as name from pg_database where datname ~ '_(restoring|replaced)$'`)
  ).map(({ name }) => name)

/** A project that has something of what is not in the template. */
const createRich = async () => {
  const story = await createTestProject(server.url)
  await made(story, '/collections', { name: 'notes', read_policy: 'owner', columns: [{ name: 'title', type: 'text' }] })
  await made(story, '/streaks', { key: 'daily', name: 'Daily', qualifying_event: 'counted' })
  await made(story, '/webhooks', { event_name: 'never', target_url: 'https://127.0.0.1:9/x' })
  await made(story, '/ai/providers', { name: 'openai', api_key: 'sk-0123456789abcdef' })
  // by a DBA
  await sql(
    'own',
    databaseOf(story),
    `create table app.favourites (id int generated always as identity primary key, name text not null unique);
     alter table app.favourites owner to trellis_owner; grant select on app.favourites to app_admin;
     create function app.shout() returns trigger language plpgsql as $$ begin new.name := upper(new.name); return new; end $$;
     create trigger shout before insert on app.favourites for each row execute function app.shout();
     insert into app.favourites (name) values ('one'), ('two')`,
  )
  expect(await note(story, 'before')).toBe(201)
  return story
}

const backUp = async (story: Story, ...args: string[]): Promise<string> => {
  const file = join(await temporaryFolder(), 'one.tar.zst')
  const done = await run('backup', env, '--project', story.projectId, '--to', file, ...args)
  expect(done, done.output).toMatchObject({ code: 0 })
  expect(done.output).toContain(`restores project ${story.projectId} as it was at 20`)
  return file
}

test('in place, while it is used: what was answered before is there, what came after it is not, and nobody else notices', {
  timeout: 240_000,
}, async () => {
  const story = await createRich()
  const bystander = await createTestProject(server.url)
  const kept = randomBytes(9_000_000)
  const asset = await uploadFile(server.url, story, kept)
  const before = Array.from({ length: 30 }, () => randomUUID())
  for (const id of before) await posted(story, id)
  let isPosting = true
  const during: string[] = []
  const posting = (async () => {
    while (isPosting) {
      const id = randomUUID()
      if (await post(server.url, story.user, id)) during.push(id)
    }
  })()
  const file = await backUp(story)
  isPosting = false
  await posting
  expect(during.length).toBeGreaterThan(0)
  const after = Array.from({ length: 10 }, () => randomUUID())
  for (const id of after) await posted(story, id)
  expect(await note(story, 'late')).toBe(201)
  const late = await uploadFile(server.url, story, Buffer.from('late'))
  await sql(
    'own',
    databaseOf(story),
    `insert into app.favourites (name) values ('three'); drop trigger shout on app.favourites`,
  )

  const restored = await run('restore', env, '--from', file, '--project', story.projectId)
  expect(restored, restored.output).toMatchObject({ code: 0 })
  expect(restored.output).toContain(`restored  project ${story.projectId} as it was at 20`)
  expect(restored.output).toContain(`database ${databaseOf(story)}_replaced`)
  await expect
    .poll(async () => (await ask(server.url, 'GET', '/v1/client/users/me', undefined, story.user)).status)
    .toBe(200)
  expect(await titles(story.user)).toEqual(['before'])
  expect(await missing(server.url, story.user, before)).toBe(0)
  expect(await missing(server.url, story.user, after)).toBe(after.length)
  expect((await download(server.url, story, asset))?.equals(kept)).toBe(true)
  expect(await download(server.url, story, late)).toBeNull()
  // what a DBA made, with its owner, its trigger and what its sequence is at
  await sql('own', databaseOf(story), `insert into app.favourites (name) values ('four')`)
  expect(await sql('own', databaseOf(story), 'select id, name from app.favourites order by id')).toEqual([
    { id: 1, name: 'ONE' },
    { id: 2, name: 'TWO' },
    { id: 3, name: 'FOUR' },
  ])
  const owner = `select tableowner, has_table_privilege('app_admin', 'app.favourites', 'select') as read,
                        has_database_privilege('login_app_user', current_database(), 'connect') as open,
                        has_database_privilege('public', current_database(), 'connect') as public from pg_tables where tablename = 'favourites'`
  expect(await sql('own', databaseOf(story), owner)).toEqual([
    { tableowner: 'trellis_owner', read: true, open: true, public: false },
  ])
  const streak = await ask(server.url, 'GET', '/v1/client/streaks/daily', undefined, story.user)
  expect(streak.body.data).toMatchObject({ current_count: 1, status: 'active' })
  const [provider] = await sql('own', databaseOf(story), 'select api_key_sealed as sealed from app.ai_providers')
  expect(createSecrets(secretsKey).decrypt(`ai provider ${story.projectId} openai`, provider.sealed)).toBe(
    'sk-0123456789abcdef',
  )
  expect(await databases()).toEqual([`${databaseOf(story)}_replaced`])
  expect(await post(server.url, bystander.user, randomUUID())).toBe(true)
  // the next one takes the place of the former
  const again = await run('restore', env, '--from', file, '--project', story.projectId)
  expect(again, again.output).toMatchObject({ code: 0 })
  expect(await databases()).toEqual([`${databaseOf(story)}_replaced`])
  const trail = await ask(
    server.url,
    'GET',
    `${adminOf(story)}/audit-events?action=projects.update`,
    undefined,
    story.developer,
  )
  expect(trail.body.data.filter(({ changes }: any) => changes.restored_at)).toHaveLength(2)
})

test('as another project beside it: keys of its own, its secrets and files, paused until its operator ends that', {
  timeout: 240_000,
}, async () => {
  const story = await createRich()
  const bytes = randomBytes(100_000)
  const asset = await uploadFile(server.url, story, bytes)
  const file = await backUp(story)
  const restored = await run('restore', env, '--from', file, '--new-project', 'A copy')
  expect(restored, restored.output).toMatchObject({ code: 0 })
  const [, id = ''] = /project ([0-9a-f-]{36}), paused/.exec(restored.output) ?? []
  const [, clientKey = ''] = /client +(\S+)/.exec(restored.output) ?? []
  const [, serverKey = ''] = /server +(\S+)/.exec(restored.output) ?? []
  const copy = { ...story, projectId: id, key: { 'x-api-key': clientKey } }
  const signIn = () => ask(server.url, 'POST', '/v1/client/auth/anonymous', {}, copy.key)
  expect((await signIn()).status).toBe(503)
  expect((await runScript('scripts/admin.ts', ['project', 'unpause', id], env)).code).toBe(0)
  await expect.poll(async () => (await signIn()).status).toBe(201)
  const users = await ask(server.url, 'GET', `${adminOf(copy)}/users`, undefined, story.developer)
  expect(users.body.data.map((user: any) => user.id)).toContain(story.userId)
  const project = await ask(server.url, 'GET', adminOf(copy), undefined, story.developer)
  expect(project.body.data).toMatchObject({ name: 'A copy', environment: 'production' })
  const asUser = { 'x-api-key': serverKey, 'x-on-behalf-of': story.userId }
  expect(await titles(asUser)).toEqual(['before'])
  expect((await download(server.url, { ...copy, user: asUser } as any, asset))?.equals(bytes)).toBe(true)
  const [provider] = await sql('own', databaseOf(copy), 'select api_key_sealed as sealed from app.ai_providers')
  const secrets = createSecrets(secretsKey)
  expect(secrets.decrypt(`ai provider ${id} openai`, provider.sealed)).toBe('sk-0123456789abcdef')
  expect(() => secrets.decrypt(`ai provider ${story.projectId} openai`, provider.sealed)).toThrow()
  // two projects that know nothing of each other
  expect(await note(story, 'only here')).toBe(201)
  expect(await titles(asUser)).toEqual(['before'])
  expect((await ask(server.url, 'GET', '/v1/client/users/me', undefined, { ...story.user, ...copy.key })).status).toBe(
    401,
  )
  await ask(server.url, 'DELETE', adminOf(copy), undefined, story.developer)
  expect((await download(server.url, story, asset))?.equals(bytes)).toBe(true)
})

test('of a project on another server, and over a pause: it is restored where it is, and stays paused', {
  timeout: 240_000,
}, async () => {
  const story = await createRich()
  const moved = await cluster('move', story.projectId, 'second')
  expect(moved.code, moved.err).toBe(0)
  const file = await backUp(story)
  expect(await note(story, 'late')).toBe(201)
  await runScript('scripts/admin.ts', ['project', 'pause', story.projectId], env)
  const restored = await run('restore', env, '--from', file, '--project', story.projectId)
  expect(restored, restored.output).toMatchObject({ code: 0 })
  const [row] = await sql('own', 'trellis_control', 'select hold from app.tenants where project_id = $1', [
    story.projectId,
  ])
  expect(row.hold).toBe('paused')
  await runScript('scripts/admin.ts', ['project', 'unpause', story.projectId], env)
  await expect
    .poll(async () => (await ask(server.url, 'GET', '/v1/client/users/me', undefined, story.user)).status)
    .toBe(200)
  expect(await titles(story.user)).toEqual(['before'])
  const [place] = await sql('second', databaseOf(story), 'select count(*)::int as n from collections.notes')
  expect(place.n).toBe(1)
})

test('a project whose database is gone comes back', { timeout: 240_000 }, async () => {
  const story = await createRich()
  const file = await backUp(story)
  await sql('own', 'postgres', `drop database "${databaseOf(story)}" with (force)`)
  const restored = await run('restore', env, '--from', file, '--project', story.projectId)
  expect(restored, restored.output).toMatchObject({ code: 0 })
  await expect
    .poll(async () => (await ask(server.url, 'GET', '/v1/client/users/me', undefined, story.user)).status, {
      timeout: 30_000,
    })
    .toBe(200)
  expect(await titles(story.user)).toEqual(['before'])
})

describe('what is refused leaves everything as it is', () => {
  let story: Story
  let file: string
  beforeAll(async () => {
    story = await createRich()
    file = await backUp(story)
  }, 120_000)
  const refused = async (args: readonly string[], why: string, variables: Record<string, string> = env) => {
    const before = await databases()
    const done = await run('restore', variables, ...args)
    expect(done, done.output).toMatchObject({ code: 1, output: expect.stringContaining(why) })
    expect(await databases()).toEqual(before)
    expect(await titles(story.user)).toEqual(['before'])
  }

  /** The archive with one entry changed, and right checksums. */
  const rewritten = async (change: (name: string, text: string) => string) => {
    const path = join(await temporaryFolder(), 'changed.tar.zst')
    const entries: Entry[] = []
    await readArchive(createReadStream(file), [], async ({ name, mode, body }) => {
      const bytes = await buffer(body)
      const changed = name.endsWith('.json') ? Buffer.from(change(name, bytes.toString())) : bytes
      entries.push({ name, mode, type: 'file', size: changed.length, body: changed })
    })
    await writeArchive(createWriteStream(path), [], async (put) => {
      for (const entry of entries) await put(entry)
    })
    return path
  }

  test('a wrong project, place or option', { timeout: 120_000 }, async () => {
    const other = await createTestProject(server.url)
    await refused(['--from', file, '--project', other.projectId], `This is a backup of project ${story.projectId}`)
    await refused(['--from', file, '--project', 'x'], '--project is the id of a project')
    await refused(['--from', file], 'This is a backup of one project', {
      DATA_DIR: join(await temporaryFolder(), 'new'),
    })
    await refused(['--from', file, '--project', story.projectId, '--new-project', 'x'], 'Say --project ID, or')
    await refused(['--from', file, '--project', story.projectId, '--at', 'latest'], '--at and --archive are for')
    const nobody = randomUUID()
    await refused(
      ['--from', file, '--new-project', 'x', '--organization', nobody],
      `There is no organization ${nobody}`,
    )
    await refused(['--from', file, '--new-project', ''], '--new-project is a name')
    const gone = await run('backup', env, '--project', randomUUID(), '--to', join(await temporaryFolder(), 'x'))
    expect(gone).toMatchObject({ code: 1, output: expect.stringContaining('There is no project') })
    const empty = { DATA_DIR: await temporaryFolder() }
    const none = await run('backup', empty, '--project', story.projectId, '--to', join(await temporaryFolder(), 'x'))
    expect(none).toMatchObject({ code: 1, output: expect.stringContaining('There are no databases here yet') })
    const all = join(await temporaryFolder(), 'all.tar.zst')
    expect(await run('backup', env, '--to', all)).toMatchObject({ code: 0 })
    await refused(['--from', all, '--project', story.projectId], 'This is a backup of an installation')
  })

  test('a damaged file, another release, another key', { timeout: 120_000 }, async () => {
    const bytes = await readFile(file)
    const half = join(await temporaryFolder(), 'half.tar.zst')
    await writeFile(half, bytes.subarray(0, bytes.length - 400))
    await refused(['--from', half, '--project', story.projectId], 'This backup')
    const manifestOf = (change: object) => (name: string, text: string) =>
      name === 'trellis.json' ? JSON.stringify({ ...JSON.parse(text), ...change }) : text
    const older = await rewritten(manifestOf({ schema_version: '20260101000000' }))
    await refused(['--from', older, '--project', story.projectId], 'restore it with that release')
    const foreign = await rewritten(manifestOf({ keys: [{ id: '00000000', check: 'x' }] }))
    await refused(['--from', foreign, '--project', story.projectId], 'SECRETS_KEY lacks the key 00000000')
    const broken = await rewritten((name, text) =>
      name === 'catalog.json' ? text.replace('create table app.favourites', 'create tabel app.favourites') : text,
    )
    await refused(['--from', broken, '--project', story.projectId], 'syntax error')
    expect((await run('restore', env, '--from', file, '--check')).output).toContain(
      `whole     project ${story.projectId}`,
    )
    for (const what of [
      ['--project', story.projectId],
      ['--new-project', 'A copy'],
    ]) {
      const { output } = await run('restore', env, '--from', file, '--check', ...what)
      expect(output).toContain(`whole     project ${story.projectId}`)
      expect(output).not.toContain('restored')
    }
  })

  test('one that is killed in the middle; another run ends it', { timeout: 120_000 }, async () => {
    const { child, ended } = await begin('restore', env, ['--from', file, '--project', story.projectId])
    await expect.poll(databases, { timeout: 60_000, interval: 5 }).toContain(`${databaseOf(story)}_restoring`)
    child.kill('SIGKILL')
    await ended
    expect(await titles(story.user)).toEqual(['before'])
    expect(await note(story, 'late')).toBe(201)
    const again = await run('restore', env, '--from', file, '--project', story.projectId)
    expect(again, again.output).toMatchObject({ code: 0 })
    expect(await databases()).not.toContain(`${databaseOf(story)}_restoring`)
    await expect
      .poll(async () => (await ask(server.url, 'GET', '/v1/client/users/me', undefined, story.user)).status)
      .toBe(200)
    expect(await titles(story.user)).toEqual(['before'])
  })
})

test('with a Postgres and a bucket of one’s own, encrypted, the newest of a prefix, and no more than are kept', {
  timeout: 240_000,
}, async () => {
  const s3 = await startS3()
  const own = (await runScript('scripts/database.ts', ['url'], env)).out.trim()
  const url = new URL(own)
  url.pathname = '/postgres'
  url.searchParams.delete('options')
  const away = {
    DATABASE_URL: url.href,
    SECRETS_KEY: secretsKey,
    STORAGE_URL: s3.url,
    DATA_DIR: await temporaryFolder(),
    DATABASE_PREFIX: 'own',
  }
  const third = await startServer(away)
  const story = await createTestProject(third.url)
  const bytes = randomBytes(50_000)
  const asset = await uploadFile(third.url, story, bytes)
  const identity = join(await temporaryFolder(), 'identity')
  const { output } = await run('backup', away, '--new-identity', identity)
  const folder = `${await temporaryFolder()}/`
  const options = ['--project', story.projectId, '--to', folder, '--recipient', output.trim(), '--keep', '1']
  await writeFile(`${folder}trellis-project-${story.projectId}-20200101T000000Z.tar.zst.age`, 'of long ago')
  const backedUp = await run('backup', away, ...options)
  expect(backedUp, backedUp.output).toMatchObject({
    code: 0,
    output: expect.stringContaining('removed  1 older backup'),
  })
  const names = await readdir(folder)
  expect(names).toEqual([
    expect.stringMatching(new RegExp(`^trellis-project-${story.projectId}-\\d{8}T\\d{6}Z\\.tar\\.zst\\.age$`)),
  ])
  const restore = (...args: string[]) => run('restore', away, '--from', folder, '--identity', identity, ...args)
  const done = await restore('--new-project', 'Copy')
  expect(done, done.output).toMatchObject({ code: 0 })
  const [, id = ''] = /project ([0-9a-f-]{36}), paused/.exec(done.output) ?? []
  const [, serverKey = ''] = /server +(\S+)/.exec(done.output) ?? []
  expect((await runScript('scripts/admin.ts', ['project', 'unpause', id], away)).code).toBe(0)
  const copy = { ...story, user: { 'x-api-key': serverKey, 'x-on-behalf-of': story.userId } } as any
  await expect
    .poll(async () => (await download(third.url, copy, asset))?.equals(bytes) ?? false, { timeout: 30_000 })
    .toBe(true)
  await endServer(third)
  await s3.stop()
})
