// npm run demo: the product's story in real requests, from a developer's sign-up to a signed delivery, on a server of its own.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { verifySignature } from '#server/providers/outbound.ts'
import { root } from '#server/root.ts'
import { type HttpsReceiver, startHttpsReceiver } from '#test/support/https.ts'
import { beginRun } from '#test/support/run.ts'
import { sendEvents } from '../sdk/src/generated/client.ts'
import { createApp } from '../sdk/src/index.ts'

const print = (text = '') => process.stdout.write(`${text}\n`)

/** Ends the demo with one sentence. */
class DemoError extends Error {}

const isSecret = /token|secret|password|key$/i

/** Tokens, keys and secrets keep their first characters; what is null is left out. */
const shortened = (value: unknown, name = ''): unknown => {
  if (typeof value === 'string') return isSecret.test(name) && value.length > 24 ? `${value.slice(0, 12)}…` : value
  if (Array.isArray(value)) return value.map((item) => shortened(item, name))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([, item]) => item !== null)
  return Object.fromEntries(entries.map(([key, item]) => [key, shortened(item, key)]))
}

const shown = (value: unknown) =>
  inspect(shortened(value), { depth: 5, breakLength: 110, compact: 4, maxArrayLength: 4, maxStringLength: 200 })
    .split('\n')
    .map((line) => `     ${line}`)
    .join('\n')

type Headers = Readonly<Record<string, string>>
type Envelope<T> = { readonly data?: T; readonly error?: { readonly code: string; readonly message: string } }
/** One request, printed with its answer; resolves with the answer's data. `quiet` prints nothing. */
type Ask = <T>(method: string, path: string, body?: unknown, headers?: Headers, quiet?: boolean) => Promise<T>

const createAsk =
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

type Server = { readonly url: string; readonly child: ChildProcess }

const ended = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null

/** A server of its own, which trusts the receiver's authority and may call this machine. */
const startServer = async (dataDir: string, caFile: string): Promise<Server> => {
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

const stopServer = async (child: ChildProcess): Promise<void> => {
  if (ended(child)) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

const until = async <T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<T> => {
  for (const deadline = Date.now() + 15_000; Date.now() < deadline; await sleep(50)) {
    const found = await look()
    if (found !== undefined) return found
  }
  throw new DemoError(`${what} did not happen within 15 seconds.`)
}

type Project = { readonly project: { id: string }; readonly api_keys: { client: { key: string } } }
type Provisioning = { readonly status: string; readonly error: { message: string } | null }
type Posted = {
  readonly event: { id: string }
  readonly effects: { streaks?: readonly { key: string; current_count: number }[] }
}

const developerAndProject = async (ask: Ask) => {
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

const definitions = async (ask: Ask, admin: string, developer: Headers, targetUrl: string) => {
  print('\n3. She defines a streak: a day counts when a user posts the event "practised".')
  const streak = { key: 'daily', name: 'Daily practice', qualifying_event: 'practised' }
  await ask('POST', `${admin}/streaks`, streak, developer)

  print('\n4. And a webhook: the same event is sent on to her server, signed with a secret that is shown once.')
  const webhook = { event_name: 'practised', target_url: targetUrl }
  const { secret } = await ask<{ secret: string }>('POST', `${admin}/webhooks`, webhook, developer)
  return secret
}

const userAndEvent = async (ask: Ask, clientKey: string) => {
  print('\n5. In her app, with the client key, a user signs in without an identity.')
  const key = { 'x-api-key': clientKey }
  const { session_token } = await ask<{ session_token: string }>('POST', '/v1/client/auth/anonymous', {}, key)
  const user = { ...key, authorization: `Bearer ${session_token}` }

  print('\n6. The user practises. The answer says at once what that moved.')
  const practised = { event_name: 'practised', properties: { minutes: 20 } }
  const { event, effects } = await ask<Posted>('POST', '/v1/client/events', practised, user)
  const streak = effects.streaks?.[0]
  if (streak?.key !== 'daily' || streak.current_count !== 1) throw new DemoError('The event moved no streak.')
  return event.id
}

const withSdk = async (url: string, clientKey: string) => {
  print('\n8. The same in an app, with the SDK, for another user.')
  const app = createApp({ url, key: clientKey })
  const { userId } = await app.ensureSignedIn()
  const { data } = await app.call(sendEvents, { body: { event_name: 'practised', properties: { minutes: 20 } } })
  print(`   ${userId}`)
  print(shown(data))
  if (!('event' in data) || data.effects.streaks?.[0]?.change !== 'started')
    throw new DemoError('The event moved no streak.')
}

const delivery = async (receiver: HttpsReceiver, secret: string, eventId: string) => {
  print('\n7. Her server gets the delivery, and checks that it is ours.')
  const request = await until('The delivery', () => receiver.requests[0])
  print(`   ${request.method} ${receiver.url}`)
  for (const [name, value] of Object.entries(request.headers))
    if (name.startsWith('x-service-')) print(`     ${name}: ${value}`)
  const body = JSON.parse(request.body) as { data: { event: { id: string } } }
  print(shown(body))
  const isOurs = verifySignature(
    String(request.headers['x-service-signature']),
    secret,
    request.body,
    Math.floor(Date.now() / 1000),
  )
  if (!isOurs) throw new DemoError('The signature of the delivery is wrong.')
  if (body.data.event.id !== eventId) throw new DemoError('The delivery is about another event.')
  print('   The signature is right.')
}

const runDemo = async (url: string, receiver: HttpsReceiver): Promise<void> => {
  const ask = createAsk(url)
  const { developer, admin, clientKey } = await developerAndProject(ask)
  const secret = await definitions(ask, admin, developer, receiver.url)
  const eventId = await userAndEvent(ask, clientKey)
  await delivery(receiver, secret, eventId)
  await withSdk(url, clientKey)
}

const interrupted = () =>
  new Promise<never>((_resolve, reject) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => reject(new DemoError(`${signal}: the demo was stopped.`)))
  })

const main = async (): Promise<void> => {
  const began = performance.now()
  const run = await beginRun()
  const stop = interrupted()
  stop.catch(() => undefined)
  const receiver = await startHttpsReceiver()
  const starting = startServer(join(run.folder, 'data'), receiver.caFile)
  try {
    print('Starting a server of its own, with an empty database.')
    const { url } = await Promise.race([starting, stop])
    print(`It listens on ${url}.`)
    await Promise.race([runDemo(url, receiver), stop])
    print(`\nThat was the whole story, in ${((performance.now() - began) / 1000).toFixed(1)} seconds.`)
  } finally {
    await starting.then(({ child }) => stopServer(child)).catch(() => undefined)
    await receiver.close()
    await run.end()
  }
}

try {
  await main()
  process.exit(0)
} catch (error) {
  process.stderr.write(`\n${error instanceof DemoError ? error.message : String((error as Error).stack)}\n`)
  process.exit(1)
}
