import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '#server/root.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()

const words = (kind: string): Promise<{ position: number; word: string }[]> =>
  project.sql('select position, word from app.name_words where kind = $1 order by position', [kind])

test.for(['adjective', 'noun'])('%ss: at least 320, numbered without a gap, each once, plain letters', async (kind) => {
  const rows = await words(kind)
  expect(rows.length).toBeGreaterThanOrEqual(320)
  expect(rows.map((row) => row.position)).toEqual(rows.map((_, index) => index))
  expect(new Set(rows.map((row) => row.word)).size).toBe(rows.length)
  expect(rows.filter((row) => !/^[a-z]{2,16}$/.test(row.word))).toEqual([])
})

test('no word is both, so that no name says it twice', async () => {
  const nouns = new Set((await words('noun')).map((row) => row.word))
  expect((await words('adjective')).filter((row) => nouns.has(row.word))).toEqual([])
})

test('the seed can be loaded again, over words that moved', async () => {
  const before = await words('noun')
  await project.sql(`update app.name_words set position = position + 1000 where kind = 'noun'`)
  await project.sql(await readFile(join(root, 'sql/seeds/tenant/name_words.sql'), 'utf8'))
  expect(await words('noun')).toEqual(before)
})
