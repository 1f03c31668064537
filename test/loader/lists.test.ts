import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readProgram } from '#fleet/load/files.ts'
import { startHarness } from '#test/support/harness.ts'
import { temporaryFolder } from '#test/support/process.ts'

const { resolve } = createRequire(import.meta.url)
const listOf = (name: string) => readFile(resolve(`disposable-email-domains/${name}`), 'utf8')

test('a seed has the text of the file of a package that it names, and its hash', async () => {
  const base = await temporaryFolder()
  await mkdir(join(base, 'sql/seeds/control'), { recursive: true })
  const seedOf = async (text: string) => {
    await writeFile(join(base, 'sql/seeds/control/words.sql'), text)
    const [seed] = (await readProgram('control', base)).seeds
    return seed!
  }
  const list = await listOf('wildcard.json')
  const named = await seedOf(`select $list$npm:disposable-email-domains/wildcard.json$list$, 'npm:x/y'`)
  expect(named.text).toBe(`select $list$${list}$list$, 'npm:x/y'`)
  expect(named.hash).toBe((await seedOf(named.text)).hash)
  await expect(seedOf('select $list$npm:no-such-package/x.json$list$')).rejects.toThrow('no-such-package')
})

test('the control database has the domains of throw-away inboxes of both lists', async () => {
  const harness = await startHarness()
  const domains = (await Promise.all(['index.json', 'wildcard.json'].map(listOf))).flatMap(
    (text) => JSON.parse(text) as string[],
  )
  const rows = await harness.control('select d.domain from app.disposable_domains d')
  expect(new Set(rows.map(({ domain }) => domain))).toEqual(new Set(domains))
})
