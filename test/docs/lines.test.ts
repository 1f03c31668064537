import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '#server/root.ts'
import { temporaryFolder } from '#test/support/process.ts'
import { lineProblems } from '../../scripts/lines.ts'

test('no line of SQL is longer than 120 characters', async () => {
  expect(await lineProblems(root)).toEqual([])
})

test('a long line is named, unless it is one long word', async () => {
  const base = await temporaryFolder()
  for (const folder of ['db', 'functions/tenant', 'policies', 'sql'])
    await mkdir(join(base, folder), { recursive: true })
  const words = (length: number) => 'select 1, '.repeat(20).slice(0, length - 1) + ';'
  const lines = [words(120), words(121), `  '${'x'.repeat(130)}';`]
  await writeFile(join(base, 'functions/tenant/words.sql'), lines.join('\n'))
  await writeFile(join(base, 'policies/words.md'), words(200))
  expect(await lineProblems(base)).toEqual(['functions/tenant/words.sql:2: 121 characters, at most 120'])
})
