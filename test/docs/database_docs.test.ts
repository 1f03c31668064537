import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connectAdmin } from '#server/database/cluster.ts'
import { root } from '#server/root.ts'
import { startHarness } from '#test/support/harness.ts'
import { databasePages } from '../../scripts/docs/database.ts'

const harness = await startHarness()
const project = await harness.project()
const { services } = harness.running
const clients: pg.Client[] = []
let pages: [file: string, text: string][] = []
/** Expressions are printed by Postgres, by each version in its own way; the pages are made by the embedded one. */
let isSameVersion = false

beforeAll(async () => {
  const place = await services.fleet.placeOf(project.id)
  for (const database of [services.control.database, place?.database ?? ''])
    clients.push(await connectAdmin(services.control.cluster, database))
  const [control, tenant] = clients as [pg.Client, pg.Client]
  pages = await databasePages(control, tenant)
  const { rows } = await control.query<{ version: string }>(`select current_setting('server_version_num') as version`)
  isSameVersion = rows[0]?.version.startsWith('18') ?? false
})
afterAll(() => Promise.all(clients.map((client) => client.end())))

describe('pages made from the databases', () => {
  test.each(['server/interface.json', 'docs/hooks.md', 'docs/schema/control.sql', 'docs/schema/tenant.sql'])(
    '%s is current: else run npm run docs',
    async (file) => {
      const made = pages.find(([name]) => name === file)?.[1] ?? ''
      expect(made).not.toBe('')
      if (isSameVersion) expect(await readFile(join(root, file), 'utf8')).toBe(made)
    },
  )

  test('every hook names the file that defines it', () => {
    const rows = (pages.find(([name]) => name === 'docs/hooks.md')?.[1] ?? '').split('\n')
    expect(rows.filter((row) => row.startsWith('| ') && row.endsWith('|  |'))).toEqual([])
  })
})
