import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '#server/root.ts'
import { temporaryFolder } from '#test/support/process.ts'
import { lineProblems } from '../../scripts/lines.ts'

test('no line of SQL is longer than 120 characters, and none of Markdown than 160', async () => {
  expect(await lineProblems(root)).toEqual([])
})

const words = (length: number) => `${'select 1, '.repeat(20).slice(0, length - 1)};`
const write = async (base: string, path: string, lines: readonly string[]) => {
  await mkdir(join(base, path, '..'), { recursive: true })
  await writeFile(join(base, path), lines.join('\n'))
}

test('a long line of SQL is named, unless it is one long word', async () => {
  const base = await temporaryFolder()
  await write(base, 'functions/tenant/words.sql', [words(120), words(121), `  '${'x'.repeat(130)}';`])
  await write(base, 'policies/words.md', [words(200)])
  expect(await lineProblems(base)).toEqual(['functions/tenant/words.sql:2: 121 characters, at most 120'])
})

test('a long line of Markdown is named, unless it is no text, cannot be broken or is written by a program', async () => {
  const base = await temporaryFolder()
  const link = `[${'some words '.repeat(12)}](words.md)`
  const free = [`| ${words(200)}`, `# ${words(200)}`, '```sql', words(200), '```', `- ${link} or ${link}`]
  await write(base, 'README.md', [words(160), words(161), ...free, `- ${words(160)}`])
  await write(base, 'docs/words.md', ['<!-- figures -->', words(200), '<!-- /figures -->', words(200)])
  await write(base, 'docs/hooks.md', [words(200)])
  expect(await lineProblems(base)).toEqual([
    'README.md:2: 161 characters, at most 160',
    'README.md:9: 162 characters, at most 160',
    'docs/words.md:4: 200 characters, at most 160',
  ])
})
