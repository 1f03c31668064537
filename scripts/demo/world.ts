/** What every demo needs: a server of its own, requests that are printed, and a developer with a project. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { root } from '#server/root.ts'

export const print = (text = '') => process.stdout.write(`${text}\n`)

/** Ends the demo with one sentence. */
export class DemoError extends Error {}

const isSecret = /token|secret|password|key$/i

/** Tokens, keys and secrets keep their first characters; what is null is left out. */
const shortened = (value: unknown, name = ''): unknown => {
  if (typeof value === 'string') return isSecret.test(name) && value.length > 24 ? `${value.slice(0, 12)}…` : value
  if (Array.isArray(value)) return value.map((item) => shortened(item, name))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([, item]) => item !== null)
  return Object.fromEntries(entries.map(([key, item]) => [key, shortened(item, key)]))
}

export const shown = (value: unknown) =>
  inspect(shortened(value), { depth: 5, breakLength: 110, compact: 4, maxArrayLength: 4, maxStringLength: 200 })
    .split('\n')
    .map((line) => `     ${line}`)
    .join('\n')

export type Headers = Readonly<Record<string, string>>
type Envelope<T> = { readonly data?: T; readonly error?: { readonly code: string; readonly message: string } }
/** One request, printed with its answer; resolves with the answer's data. `quiet` prints nothing. */
export type Ask = <T>(method: string, path: string, body?: unknown, headers?: Headers, quiet?: boolean) => Promise<T>

export const createAsk =
  (url: string): Ask =>
  async <T>(method: string, path: string, body?: unknown, headers: Headers = {}, quiet = false) => {
    const printStep = quiet ? () => undefined : print
    printStep(`   ${method} ${path}`)
    for (const [name, value] of Object.entries(headers)) printStep(`     ${name}: ${value.slice(0, 24)}…`)
    if (body !== undefined) printStep(shown(body))
    const response = await fetch(url + path, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(10_000),
    })
    const { data, error } = (await response.json()) as Envelope<T>
    printStep(`   -> ${response.status}`)
    printStep(shown(data ?? error))
    if (error || data === undefined)
      throw new DemoError(`${method} ${path} answered ${response.status} ${error?.code}: ${error?.message}`)
    return data
  }

export type Server = { readonly url: string; readonly child: ChildProcess }

const ended = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null

/** A server of its own, which trusts the receiver's authority and may call this machine. */
export const startServer = async (dataDir: string, caFile: string): Promise<Server> => {
  const child = spawn(process.execPath, [join(root, 'server/main.ts')], {
    env: {
      PATH: process.env['PATH'],
      DATA_DIR: dataDir,
      PORT: '0',
      LOG_LEVEL: 'warn',
      WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8,::1',
      WEBHOOK_CA_FILE: caFile,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    // Ctrl-C reaches us; the server is told when we are done with it
    detached: true,
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk
    })
  for (const deadline = Date.now() + 60_000; ; await sleep(20)) {
    const url = /"api":"([^"]+)\/v1"/.exec(output)?.[1]
    if (url) return { url, child }
    if (ended(child)) throw new DemoError(`The server did not start:\n${output.trim()}`)
    if (Date.now() > deadline) {
      await stopServer(child)
      throw new DemoError(`The server did not start within a minute:\n${output.trim()}`)
    }
  }
}

export const stopServer = async (child: ChildProcess): Promise<void> => {
  if (ended(child)) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

export const until = async <T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<T> => {
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await sleep(50)) {
    const found = await look()
    if (found !== undefined) return found
  }
  throw new DemoError(`${what} did not happen within a minute.`)
}

type Project = { readonly project: { id: string }; readonly api_keys: { client: { key: string } } }
type Provisioning = { readonly status: string; readonly error: { message: string } | null }
export const developerAndProject = async (ask: Ask) => {
  print('\n1. A developer signs up.')
  const signup = await ask<{ access_token: string }>('POST', '/v1/auth/developer/signup', {
    email: 'ada@example.com',
    password: 'a long passphrase',
  })
  const developer = { authorization: `Bearer ${signup.access_token}` }

  print('\n2. She creates a project. It gets two keys at once, and a database of its own a moment later.')
  const made = await ask<Project>('POST', '/v1/admin/projects', { name: 'Piano lessons' }, developer)
  const admin = `/v1/admin/projects/${made.project.id}`
  const look = (quiet: boolean) => ask<Provisioning>('GET', `${admin}/provisioning-status`, undefined, developer, quiet)
  await until('The making of the database', async () => {
    const { status, error } = await look(true)
    if (status === 'failed') throw new DemoError(`The database could not be made: ${error?.message}`)
    return status === 'ready' ? status : undefined
  })
  await look(false)
  return { developer, admin, clientKey: made.api_keys.client.key }
}
