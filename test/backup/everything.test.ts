import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, describe, expect, test } from 'vitest'
import { binariesIn } from '#fleet/embedded/binaries.ts'
import { startEmbeddedPostgres } from '#fleet/embedded/server.ts'
import { type Catalog, differences, readCatalog } from '#fleet/move/catalog.ts'
import { movedTables, sumsOf } from '#fleet/move/copy.ts'
import { runScript } from '#test/support/admin.ts'
import { run } from '#test/support/backups.ts'
import { createEverything, type Sql, type Story, useEverything } from '#test/support/everything.ts'
import { startHttpsReceiver } from '#test/support/https.ts'
import { endPrograms, startServer, temporaryFolder } from '#test/support/process.ts'

/** A developer's project that uses everything, from an event with its streak and webhook to what a DBA has made, is backed up and restored with the rights that the guides name, and used afterwards. */
const receiver = await startHttpsReceiver()
const afterwards: (() => Promise<unknown>)[] = [endPrograms, receiver.close]
afterAll(async () => {
  for (const end of afterwards) await end()
}, 120_000)

/** As the self-hosting guide makes it: CREATEDB and CREATEROLE, and no superuser. */
const documentedRole = "create role trellis login createdb createrole password 'a good password'"

/** The package of another version of Postgres: `npm run proof:versions` names each. */
const otherVersion = process.env['TRELLIS_POSTGRES']

const startOwnPostgres = async () => {
  const postgres = await startEmbeddedPostgres({
    dataDir: join(await temporaryFolder(), 'own'),
    ...(otherVersion ? { binaries: await binariesIn(otherVersion) } : {}),
    superuserPassword: 'superuser',
    log: () => undefined,
  })
  afterwards.push(postgres.stop)
  const client = new pg.Client({ connectionString: postgres.url })
  await client.connect()
  await client.query(documentedRole).finally(() => client.end())
  const url = new URL(postgres.url)
  url.username = 'trellis'
  url.password = 'a%20good%20password'
  return url.href
}

const installations: Record<string, () => Promise<Record<string, string>>> = {
  ...(otherVersion ? {} : { 'embedded Postgres': async () => ({}) }),
  'a Postgres of one’s own, with the role that the guide makes': async () => ({
    DATABASE_URL: await startOwnPostgres(),
    SECRETS_KEY: randomBytes(32).toString('base64'),
  }),
}

/** Tables that nobody writes while a project rests. */
const still =
  /^(collections|crm|extra)\.|^app\.(users|engagement_events\w*|media_assets|collection\w*|streaks|user_streaks|webhooks|rest_access)$/

/** Postgres writes a condition of three parts with other parentheses once it has read its own words. */
const flat = (catalog: Catalog): Catalog =>
  new Map([...catalog].map(([key, item]) => [key, { ...item, make: item.make?.replaceAll(/[()]/g, '') ?? null }]))

describe.each(Object.keys(installations))('%s', (name) => {
  test('in place and as another project: structure, rows, files, and every way in', { timeout: 300_000 }, async () => {
    const given = {
      ...(await installations[name]?.()),
      WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8',
      WEBHOOK_CA_FILE: receiver.caFile,
    }
    const server = await startServer(given)
    const env = { ...given, DATA_DIR: server.dataDir }
    const connected = async <T>(story: Story, work: (client: pg.Client) => Promise<T>) => {
      const { out } = await runScript('scripts/database.ts', ['url', story.projectId], env)
      const client = new pg.Client({ connectionString: out.trim() })
      await client.connect()
      return work(client).finally(() => client.end())
    }
    const open =
      (story: Story): Sql =>
      (text) =>
        connected(story, async (client) => {
          const found = await client.query(text)
          return (Array.isArray(found) ? found.at(-1) : found).rows
        })
    /** Everything, rows by their sums. */
    const lookAt = (story: Story) =>
      connected(story, async (client) => ({
        catalog: await readCatalog(client),
        sums: await sumsOf(client, await movedTables(client)),
      }))
    const everything = await createEverything(server.url, open, receiver.url)
    await expect.poll(() => receiver.requests.length, { timeout: 30_000 }).toBe(1)
    receiver.requests.length = 0
    const { story } = everything
    const folder = `${await temporaryFolder()}/`
    const before = await lookAt(story)
    const backedUp = await run('backup', env, '--project', story.projectId, '--to', folder)
    expect(backedUp, backedUp.output).toMatchObject({ code: 0 })

    await open(story)('drop schema crm cascade; delete from collections.notes; drop view rest.topics')
    const restored = await run('restore', env, '--from', folder, '--project', story.projectId)
    expect(restored, restored.output).toMatchObject({ code: 0 })
    const after = await lookAt(story)
    expect(differences(flat(before.catalog), flat(after.catalog))).toEqual([])
    for (const [table, sum] of before.sums)
      if (still.test(table)) expect(`${table}: ${after.sums.get(table)}`).toBe(`${table}: ${sum}`)
    await useEverything(server.url, everything, story, open(story))

    const other = await run('restore', env, '--from', folder, '--new-project', 'A copy')
    expect(other, other.output).toMatchObject({ code: 0 })
    const [, id = ''] = /project ([0-9a-f-]{36}), paused/.exec(other.output) ?? []
    const [, serverKey = ''] = /server +(\S+)/.exec(other.output) ?? []
    const user = { 'x-api-key': serverKey, 'x-on-behalf-of': story.userId }
    const copy: Story = { ...story, projectId: id, key: { 'x-api-key': serverKey }, user }
    expect(differences(flat(before.catalog), flat((await lookAt(copy)).catalog))).toEqual([])
    expect((await runScript('scripts/admin.ts', ['project', 'unpause', id], env)).code).toBe(0)
    await useEverything(server.url, everything, copy, open(copy))
  })
})
