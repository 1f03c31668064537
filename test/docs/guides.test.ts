import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { root } from '#server/root.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness({ work: true })

/** Calls that a guide shows with their answers. They may stand before the commands that set their variables. */
const shownCalls = (text: string) =>
  [...text.matchAll(/```console\n\$ (.*)\n(.*)\n```/g)].map(([, command = '', answer = '']) => ({ command, answer }))

/** The commands of a guide that speak to a running server, in their order, and then the calls that it shows. */
const commandsOf = (text: string): string => {
  const blocks = [...text.matchAll(/```sh\n(.*?)```/gs)].map(([, commands = '']) => commands)
  return [...blocks.filter((commands) => !/^npm /m.test(commands)), ...shownCalls(text).map(({ command }) => command)]
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
  const text = await readFile(join(root, file), 'utf8')
  const commands = commandsOf(text)
  for (const expected of [null, again]) {
    const { codes, stdout, stderr } = await run(commands)
    expect(stderr).toBe('')
    expect(stdout).toContain('"change": "started"')
    for (const { answer } of shownCalls(text)) expect(stdout).toContain(answer)
    const refused = codes.filter((code) => !(perhaps as readonly string[]).includes(code ?? ''))
    if (expected) expect(refused).toEqual(expected)
  }
})

test('the function and the route that the README shows are those of the code', async () => {
  const readme = await readFile(join(root, 'README.md'), 'utf8')
  expect(shownCalls(readme)).toHaveLength(1)
  const withoutMargin = (text: string) => text.replace(/^ +/gm, '')
  const shown = { sql: 'functions/tenant/push/client.sql', ts: 'server/routes/push.ts' }
  for (const [language, path] of Object.entries(shown)) {
    const [, snippet = ''] = new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(readme) ?? []
    const code = withoutMargin(await readFile(join(root, path), 'utf8'))
    const lines = withoutMargin(snippet).trim().split('\n')
    // the group of the route has others before it
    const [group, ...rest] = language === 'ts' ? lines : ['', ...lines]
    expect(code).toContain(`${rest.join('\n')}\n`)
    expect(code.indexOf(group ?? '')).toBeLessThan(code.indexOf(rest.join('\n')))
    expect(code).toContain(group)
  }
})

test('the first change of the guide for editing is in the file that it names', async () => {
  const guide = await readFile(join(root, 'docs/editing-policies-and-functions.md'), 'utf8')
  const [, path = '', snippet = ''] = /The limit is in `([^`]+)`[^\n]*\n\n```sql\n(.*?)```/s.exec(guide) ?? []
  expect(await readFile(join(root, path), 'utf8')).toContain(snippet)
})
