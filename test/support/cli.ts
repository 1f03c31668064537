import { execFile, spawn as spawnProcess } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { spawn } from '@lydell/node-pty'
import { root } from '#server/root.ts'
import type { Developer, Harness } from '#test/support/harness.ts'
import { openPage } from '#test/support/page_script.ts'
import { programEnvironment, temporaryFolder } from '#test/support/process.ts'

export type Ended = { readonly code: number; readonly stdout: string; readonly stderr: string }
export type Shown = {
  /** What the terminal got, with its escapes. */
  text(): string
  /** Resolves when this has been shown. */
  shows(what: string | RegExp): Promise<string>
  type(text: string): void
  /** The exit code. */
  readonly ended: Promise<number>
}
export type Machine = {
  readonly home: string
  readonly folder: string
  readonly env: Readonly<Record<string, string>>
  /** Without a terminal, as in CI. */
  run(args: readonly string[], more?: { env?: Record<string, string>; cwd?: string; input?: string }): Promise<Ended>
  /** On a terminal of 100 columns. */
  show(args: readonly string[], more?: { env?: Record<string, string>; cwd?: string }): Shown
}

const escapes = new RegExp(`${String.fromCharCode(27)}\\[[0-9;?]*[a-zA-Z]`, 'g')
/** What is read on a terminal: without colours and other escapes. */
export const readable = (text: string) => text.replace(escapes, '').replaceAll('\r', '')

const program = join(root, 'cli/src/main.ts')

/** A person's machine: a home, an empty folder, and hardly a variable of this process. */
export const machine = async (file = program): Promise<Machine> => {
  const home = await temporaryFolder()
  const folder = join(home, 'work')
  await mkdir(folder)
  const env = {
    ...programEnvironment,
    HOME: home,
    XDG_CONFIG_HOME: join(home, '.config'),
    TERM: 'xterm-256color',
  }
  return {
    home,
    folder,
    env,
    run: (args, more = {}) =>
      new Promise((resolve, reject) => {
        const child = spawnProcess(process.execPath, [file, ...args], {
          cwd: more.cwd ?? folder,
          env: { ...env, ...more.env },
        })
        const texts = { stdout: '', stderr: '' }
        child.stdout.on('data', (chunk: Buffer) => (texts.stdout += String(chunk)))
        child.stderr.on('data', (chunk: Buffer) => (texts.stderr += String(chunk)))
        child.on('error', reject)
        child.on('close', (code) => resolve({ code: code ?? -1, ...texts }))
        child.stdin.end(more.input ?? '')
      }),
    show(args, more = {}) {
      const terminal = spawn(process.execPath, [file, ...args], {
        cols: 100,
        rows: 40,
        cwd: more.cwd ?? folder,
        // a browser would be opened on the machine of who runs the tests
        env: { ...env, BROWSER: 'true', ...more.env },
      })
      let text = ''
      const waiting = new Set<() => void>()
      terminal.onData((data) => {
        text += data
        for (const look of waiting) look()
      })
      const ended = new Promise<number>((resolve) => terminal.onExit(({ exitCode }) => resolve(exitCode)))
      const shows = (what: string | RegExp) =>
        new Promise<string>((resolve, reject) => {
          const look = () => {
            const now = readable(text)
            if (typeof what === 'string' ? !now.includes(what) : !what.test(now)) return
            waiting.delete(look)
            resolve(now)
          }
          waiting.add(look)
          look()
          void ended.then((code) => {
            look()
            if (waiting.delete(look)) reject(new Error(`Ended with ${code} without "${what}":\n${readable(text)}`))
          })
        })
      return { text: () => text, shows, ended, type: (typed) => terminal.write(typed) }
    },
  }
}

export const writeJson = async (file: string, value: unknown): Promise<void> => {
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, JSON.stringify(value, null, 2))
}

/** The code that a terminal shows at a sign-in, and the page where it is entered. */
export const codeOf = async (shown: Shown): Promise<{ code: string; page: string }> => {
  const [, page = '', code = ''] = /Open (\S+)\s+and enter the code (\S+)/.exec(await shown.shows(/code \S{9}\n/)) ?? []
  return { code, page }
}

/** What a person does at /device, on machines without a browser: the page's own script runs. */
export const decideWithoutBrowser = async (url: string, developer: Developer, code: string, approve: boolean) => {
  const page = await openPage(url)
  page.fill(0, { user_code: code, email: developer.email, password: 'a long passphrase' })
  await page.press(0, 'Continue')
  if (page.isHidden(1)) throw new Error(page.text('output'))
  await page.press(1, approve ? 'Approve' : 'Refuse')
  return { tool: page.text('#tool'), said: page.text('output') }
}

/** Signs in without waiting for a page, as every command but `login` wants it. */
export const signedIn = async (harness: Harness, developer: Developer): Promise<Machine> => {
  const made = await machine()
  const { accessToken: access_token, refreshToken: refresh_token, email } = await harness.signIn(developer)
  const login = { access_token, refresh_token, email, client_name: 'a test' }
  await writeJson(join(made.home, '.config/trellis/credentials.json'), {
    version: 1,
    current: harness.url,
    servers: { [harness.url]: login },
  })
  return made
}

export const execute = promisify(execFile)
