import { execFile } from 'node:child_process'
import { cp, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { root } from '#server/root.ts'
import { createClient, freshEmail } from '#test/support/client.ts'
import {
  createTestProject,
  endPrograms,
  programEnvironment,
  startServer,
  temporaryFolder,
} from '#test/support/process.ts'
import { openSocket } from '#test/support/realtime.ts'

afterAll(endPrograms)

const program = [
  'console',
  'db',
  'docs',
  'fleet',
  'functions',
  'policies',
  'scripts',
  'sdk',
  'server',
  'sql',
  'test',
  'workers',
]

/** A copy of the program with one area more, of test/fixtures/keepsakes: files of the area's name alone, and what npm run docs writes. */
const programWithArea = async (): Promise<string> => {
  const folder = await temporaryFolder()
  for (const part of [...program, 'package.json', 'CHANGELOG.md', 'README.md'])
    await cp(join(root, part), join(folder, part), { recursive: true })
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  await cp(join(root, 'test/fixtures/keepsakes'), folder, { recursive: true })
  await promisify(execFile)(process.execPath, [join(folder, 'scripts/docs.ts')], { env: programEnvironment })
  return folder
}

test('an area is files of its name: what it declares is found everywhere without an edit elsewhere', {
  timeout: 180_000,
}, async () => {
  const folder = await programWithArea()
  const { url } = await startServer({}, folder)
  const client = createClient(url)
  const anyone = client({})
  const { developer, projectId, key, user, userId } = await createTestProject(url)
  const admin = client(developer)
  const of = `/admin/projects/${projectId}`

  // the document, the console's navigation and pages, and the guides
  const document = (await anyone.get('//openapi.json')).body
  expect(document.paths['/v1/client/keepsakes/{key}/finds']?.post).toMatchObject({ tags: ['Keepsakes'] })
  const consolePage = await (await fetch(`${url}/console`)).text()
  const [, main = ''] = /"\/console\/assets\/(main-[^"]+\.js)"/.exec(consolePage) ?? []
  const asset = async (name: string) => (await fetch(`${url}/console/assets/${name}`)).text()
  const begun = await asset(main)
  const parts = [...begun.matchAll(/from"\.\/(chunk-[^"]+)"/g)].map(([, name = '']) => name)
  const scripts = [begun, ...(await Promise.all(parts.map(asset)))].join('\n')
  expect(scripts).toMatch(/title:"Keepsakes"/)
  const [, page = ''] = /path:"keepsakes\/new"[^}]*?import\("\.\/([^"]+)"\)/.exec(scripts) ?? []
  expect(await asset(page)).toContain('Things that users find once')
  expect(await readFile(join(folder, 'docs/api.md'), 'utf8')).toContain('/client/keepsakes/:key/finds')
  for (const made of [
    'tg_keepsake_finds__publish_change',
    'channel__keepsake',
    'published_event__keepsake',
    'keepsakes__polish',
  ])
    expect(await readFile(join(folder, 'docs/hooks.md'), 'utf8')).toMatch(new RegExp(`${made}.*keepsakes`))

  // its definitions, and the audit trail
  const made = await admin.post(`${of}/keepsakes`, { key: 'old-key', name: 'Old key' })
  expect(made.status, made.text).toBe(201)
  expect((await admin.get(`${of}/audit-events?action=keepsakes.create`)).data).toHaveLength(1)

  // realtime: its channel, its rows, its events; and the task that changes the row
  const socket = await openSocket(url, user)
  expect(await socket.subscribe('keepsake:old-key')).toMatchObject({ type: 'ack' })
  expect(await socket.subscribe('user')).toMatchObject({ type: 'ack' })
  const anonymous = client(user)
  const find = await anonymous.post('/client/keepsakes/old-key/finds')
  expect(find, find.text).toMatchObject({ status: 201, data: { app_user_id: userId, is_polished: false } })
  expect((await anonymous.post('/client/keepsakes/old-key/finds')).error?.code).toBe('CONFLICT')
  expect(await socket.next({ type: 'event', channel: 'user' })).toMatchObject({
    event: 'keepsake.found',
    payload: { keepsake_id: made.data.id, key: 'old-key' },
  })
  expect(await socket.next({ type: 'event', channel: 'keepsake:old-key' })).toMatchObject({
    event: 'keepsake.polished',
    payload: { ...find.data, is_polished: true },
  })
  await socket.close()

  // its counter
  expect((await admin.get(`${of}/keepsakes/old-key/finds`)).body).toMatchObject({
    total: 1,
    data: [{ is_polished: true }],
  })

  // GraphQL, without the column that is hidden
  expect((await admin.patch(of, { graphql_enabled: true })).status).toBe(200)
  const query = async (text: string) => (await admin.post(`${of}/graphql`, { query: text })).body
  expect(
    await query('{ keepsakes { nodes { key keepsakeFinds { totalCount nodes { isPolished userId } } } } }'),
  ).toEqual({
    data: {
      keepsakes: {
        nodes: [{ key: 'old-key', keepsakeFinds: { totalCount: 1, nodes: [{ isPolished: true, userId }] } }],
      },
    },
  })
  expect((await query('{ keepsakeFinds { nodes { placeToken } } }')).errors[0].extensions.code).toBe('INVALID_QUERY')

  // the export of a user, and the merge into another
  const exported = async (id: string) =>
    (await admin.get(`${of}/users/${id}/export`)).text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { section: string })
      .filter((line) => JSON.stringify(line).includes('keepsake_finds'))
  expect(JSON.stringify(await exported(userId))).toContain(find.data.id)
  expect(JSON.stringify(await exported(userId))).not.toContain('attic')
  const app = client(key)
  const signedUp = await app.post('/client/auth/email/signup', { email: freshEmail(), password: 'a long passphrase' })
  const merged = await client({ ...key, authorization: `Bearer ${signedUp.data.session_token}` }).post(
    '/client/auth/merge',
    {
      from_session_token: user.authorization.replace('Bearer ', ''),
    },
  )
  expect(merged.data, merged.text).toMatchObject({ merged: { keepsake_finds: 1 } })
  expect(JSON.stringify(await exported(signedUp.data.user.id))).toContain(find.data.id)

  // the promotion of its definitions
  const { data: other } = await admin.post('/admin/projects', { name: 'Other' })
  const target = `/admin/projects/${other.project.id}`
  await expect
    .poll(async () => (await admin.get(`${target}/provisioning-status`)).data.status, { timeout: 20_000 })
    .toBe('ready')
  const planned = await admin.post(`${of}/promotion/plan`, { target_project_id: other.project.id })
  expect(planned.data, planned.text).toMatchObject({ ops: [{ op: 'create', kind: 'keepsakes', key: 'old-key' }] })
  await admin.post(`${of}/promotion/apply`, { plan_hash: planned.data.plan_hash })
  expect((await admin.get(`${target}/keepsakes/old-key`)).data).toMatchObject({ name: 'Old key' })
})
