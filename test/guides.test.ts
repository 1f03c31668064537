import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { root } from '#server/database/files.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness({ work: true })

/** The commands of a guide that speak to a running server, in their order. */
const commandsOf = async (file: string): Promise<string> => {
  const text = await readFile(join(root, file), 'utf8')
  const blocks = [...text.matchAll(/```sh\n(.*?)```/gs)].map(([, commands = '']) => commands)
  return blocks
    .filter((commands) => !/^npm /m.test(commands))
    .join('\n')
    .replaceAll('http://127.0.0.1:4000', harness.url)
}

const run = async (commands: string) => {
  const path = `${dirname(process.execPath)}:${process.env['PATH']}`
  const { stdout, stderr } = await promisify(execFile)('bash', ['--norc', '-c', commands], {
    env: { PATH: path },
    timeout: 100_000,
  })
  return { codes: [...stdout.matchAll(/"code" ?: ?"([A-Z_]+)"/g)].map(([, code]) => code), stdout, stderr }
}

test.each([
  ['README.md', [], []],
  // a name of the outside world is resolved: where there is none, the target is refused
  ['docs/quickstart.md', ['EMAIL_EXISTS'], ['TARGET_URL_NOT_ALLOWED']],
] as const)('%s can be followed twice', { timeout: 240_000 }, async (file, again, perhaps) => {
  const commands = await commandsOf(file)
  for (const expected of [null, again]) {
    const { codes, stdout, stderr } = await run(commands)
    expect(stderr).toBe('')
    expect(stdout).toContain('"change": "started"')
    const refused = codes.filter((code) => !(perhaps as readonly string[]).includes(code ?? ''))
    if (expected) expect(refused).toEqual(expected)
  }
})

test('the first change of the guide for editing is in the file that it names', async () => {
  const guide = await readFile(join(root, 'docs/editing-policies-and-functions.md'), 'utf8')
  const [, path = '', snippet = ''] = /The limit is in `([^`]+)`[^\n]*\n\n```sql\n(.*?)```/s.exec(guide) ?? []
  expect(await readFile(join(root, path), 'utf8')).toContain(snippet)
})
