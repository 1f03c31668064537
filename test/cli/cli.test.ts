import { chmod, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { personalToken } from '#test/support/accounts.ts'
import { launchChromium } from '#test/support/chromium.ts'
import { codeOf, machine, readable, signedIn, writeJson } from '#test/support/cli.ts'
import { type Developer, startHarness } from '#test/support/harness.ts'
import { endPrograms } from '#test/support/process.ts'

/** The command as a person runs it, on a terminal, and as CI does, without one; against a real server. */
const harness = await startHarness()
const owner = await harness.developer()
const project = await harness.project({ developer: owner })
afterAll(endPrograms)
const credentialsOf = (home: string) => join(home, '.config/trellis/credentials.json')

const browser = await launchChromium()

/** Opens the page in a browser, and does what a person does there. */
const decide = async (page: string, developer: Developer, code: string, approve: boolean) => {
  const tab = await browser.newPage()
  try {
    await tab.goto(page)
    await tab.fill('[name=user_code]', code)
    await tab.fill('[name=email]', developer.email)
    await tab.fill('[name=password]', 'a long passphrase')
    await tab.click('text=Continue')
    const tool = await tab.locator('#tool').filter({ visible: true }).textContent()
    await tab.click(approve ? 'button:text-is("Approve")' : 'button:text-is("Refuse")')
    await tab
      .locator('output')
      .filter({ hasText: approve ? 'is signed in' : 'was refused' })
      .waitFor()
    return { tool, said: await tab.locator('output').textContent() }
  } finally {
    await tab.close()
  }
}

describe('sign-in', () => {
  test('a code is approved on the page, the token is kept for its owner alone, and is nowhere printed', async () => {
    const { home, show, run } = await machine()
    const shown = show(['login', '--url', harness.url])
    const { code, page } = await codeOf(shown)
    expect(page).toBe(`${harness.url}/device`)
    expect(await decide(page, owner, code, true)).toMatchObject({
      tool: expect.stringMatching(/^trellis on /),
      said: expect.stringContaining('is signed in'),
    })
    expect(await shown.ended, readable(shown.text())).toBe(0)
    expect(readable(shown.text())).toContain(`Signed in to ${harness.url} as ${owner.email}.`)
    const stored = await readFile(credentialsOf(home), 'utf8')
    const { access_token, refresh_token } = JSON.parse(stored).servers[harness.url]
    expect((await stat(credentialsOf(home))).mode & 0o777).toBe(0o600)
    expect((await stat(join(home, '.config/trellis'))).mode & 0o777).toBe(0o700)
    for (const secret of [access_token, refresh_token]) expect(shown.text()).not.toContain(secret)

    // the server is remembered
    const who = await run(['whoami', '--json'])
    expect(JSON.parse(who.stdout)).toMatchObject({
      url: harness.url,
      from: 'trellis login',
      developer: { email: owner.email, token: { type: 'session' } },
    })
    const out = await run(['logout'])
    expect([out.code, out.stdout]).toEqual([0, `Signed out of ${harness.url}.\n`])
    expect(await readFile(credentialsOf(home), 'utf8')).not.toContain(refresh_token)
    const used = await harness.anyone.post('/auth/developer/refresh', { refresh_token })
    expect(used.status).toBe(401)
    const after = await run(['whoami', '--url', harness.url])
    expect([after.code, after.stdout]).toEqual([3, ''])
    expect(after.stderr).toContain('trellis login')
    expect((await run(['logout', '--url', harness.url])).stdout).toContain('Nobody was signed in')
  })

  test('a refusal on the page ends the sign-in with 3, and Ctrl-C with 130', async () => {
    const { home, show } = await machine()
    const shown = show(['login', '--url', harness.url])
    const { code, page } = await codeOf(shown)
    await decide(page, owner, code, false)
    expect(await shown.ended).toBe(3)
    expect(readable(shown.text())).toContain('refused')
    const left = show(['login', '--url', harness.url])
    await left.shows('Waiting for the approval')
    left.type('\u0003')
    expect(await left.ended).toBe(130)
    await expect(stat(credentialsOf(home))).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('an expired token is renewed once by many commands at a time', async () => {
    const { home, run } = await signedIn(harness, owner)
    const before = JSON.parse(await readFile(credentialsOf(home), 'utf8')).servers[harness.url]
    harness.setTime(new Date(Date.now() + 90_000_000))
    try {
      const all = await Promise.all(Array.from({ length: 4 }, () => run(['whoami'])))
      expect(all.map(({ code, stderr }) => [code, stderr])).toEqual(all.map(() => [0, '']))
      const after = JSON.parse(await readFile(credentialsOf(home), 'utf8')).servers[harness.url]
      expect(after.refresh_token).not.toBe(before.refresh_token)
    } finally {
      harness.setTime(null)
    }
  })

  test('a file that others may read is closed to them again', async () => {
    const { home, run } = await signedIn(harness, owner)
    await chmod(credentialsOf(home), 0o644)
    expect((await run(['whoami'])).code).toBe(0)
    expect((await stat(credentialsOf(home))).mode & 0o777).toBe(0o600)
  })
})

describe('a token of the environment', () => {
  test('goes before a sign-in, shows its scopes, and what it may not do ends with 4', async () => {
    const { run } = await signedIn(harness, owner)
    const { token } = await personalToken(owner, { scopes: ['users:read'] })
    const env = { TRELLIS_URL: harness.url, TRELLIS_TOKEN: token, TRELLIS_PROJECT: project.id }
    const who = await run(['whoami'], { env })
    expect(who.stdout).toContain('users:read')
    expect(who.stdout + who.stderr).not.toContain(token)
    const refused = await run(['types', '--json'], { env })
    expect(refused.code).toBe(4)
    expect(JSON.parse(refused.stderr).error).toMatchObject({ code: 'SCOPE_REQUIRED', exit_code: 4 })
    expect((await run(['login'], { env })).code).toBe(2)
  })

  test('is not sent to a server that a file of the folder names, nor without TLS', async () => {
    const { folder, run } = await machine()
    await writeJson(join(folder, 'trellis.json'), { version: 1, url: harness.url, project: project.id })
    const refused = await run(['whoami'], { env: { TRELLIS_TOKEN: 'svc_dpat_secret' } })
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('TRELLIS_URL')
    expect(refused.stderr).not.toContain('svc_dpat_secret')
    for (const url of ['http://api.example.test', 'ftp://api.example.test', 'https://a:b@api.example.test', 'api']) {
      expect((await run(['whoami', '--url', url], { env: { TRELLIS_TOKEN: 'x' } })).code, url).toBe(2)
    }
  })
})

describe('words', () => {
  test('that are wrong end with 2, and say what may have been meant', async () => {
    const { run } = await machine()
    const cases: [string[], string][] = [
      [['pusj'], 'Did you mean push?'],
      [['events', 'tial'], 'Did you mean tail?'],
      [['event', 'tail'], 'Did you mean events tail?'],
      [['events'], 'trellis events tail'],
      [['zzzzzz'], 'trellis help'],
      [['push', '--prnue'], 'Did you mean --prune?'],
      [['types', '--format', 'jsonschema'], 'Did you mean json-schema?'],
      [['types', '--out'], 'needs a value'],
      [['plan', '--check=yes'], 'takes no value'],
      [['users', 'show'], 'needs USER'],
      [['whoami', 'now'], 'does not take "now"'],
      [['completion', 'bsh'], 'Did you mean bash, or zsh?'],
      [['plan'], 'trellis login'],
      [['link'], 'trellis init'],
    ]
    for (const [args, words] of cases) {
      const { code, stdout, stderr } = await run(args)
      expect([args, code, stdout, stderr]).toEqual([args, 2, '', expect.stringContaining(words)])
    }
  })

  test('help names every command, with its options', async () => {
    const { run } = await machine()
    const { commands } = await import('../../cli/src/commands.ts')
    const whole = await run(['help'])
    expect(whole.code).toBe(0)
    for (const { name, summary } of commands) {
      expect(whole.stdout).toContain(name)
      expect(whole.stdout).toContain(summary)
    }
    const push = await run(['push', '--help'])
    expect([push.code, push.stdout]).toEqual([0, (await run(['help', 'push'])).stdout])
    expect(push.stdout).toContain('--plan HASH')
    const manifest = JSON.parse(await readFile(new URL('../../cli/package.json', import.meta.url), 'utf8'))
    expect((await run(['--version'])).stdout).toBe(`${manifest.version}\n`)
  })

  test('are coloured on a terminal alone, and not with NO_COLOR', async () => {
    const { run, show } = await machine()
    const bold = '\u001b[1m'
    const colored = show(['help'])
    await colored.ended
    expect(colored.text()).toContain(bold)
    for (const [args, env] of [
      [['help'], { NO_COLOR: '1' }],
      [['help', '--no-color'], {}],
      [['help'], { TERM: 'dumb' }],
    ] as const) {
      const shown = show(args, { env })
      await shown.ended
      expect(shown.text()).not.toContain(bold)
    }
    expect((await run(['help'])).stdout).not.toContain(bold)
    expect((await run(['help'], { env: { FORCE_COLOR: '1' } })).stdout).toContain(bold)
  })

  test('a server that cannot be reached ends with 7', async () => {
    const { run } = await machine()
    const { code, stderr } = await run(['login', '--url', 'http://127.0.0.1:1', '--json'])
    expect(code).toBe(7)
    expect(JSON.parse(stderr).error).toMatchObject({ code: 'NETWORK_ERROR', exit_code: 7 })
  })
})
