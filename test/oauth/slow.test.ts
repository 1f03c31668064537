import type { ServerResponse } from 'node:http'
import { createServer, type Socket } from 'node:net'
import { afterAll, afterEach, expect, test } from 'vitest'
import { parseAllowedCidrs } from '#server/providers/addresses.ts'
import { createOutbound } from '#server/providers/outbound.ts'
import { startHarness } from '#test/support/harness.ts'
import { startHttpsReceiver } from '#test/support/https.ts'
import { appAddress, newPkce } from '#test/support/oauth.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** A provider that hangs, drips, or never ends: bounded in time and size, and nothing of the server is held meanwhile. */
const held: ServerResponse[] = []
let hangs = ''
const receiver = await startHttpsReceiver({
  handler: ({ path }, response) => {
    const at = path.split('?')[0] ?? ''
    if (at === '/drip' || at === '/endless') {
      const [bytes, everyMs] = at === '/drip' ? [1, 20] : [64 * 1024, 1]
      response.writeHead(200, { 'content-type': 'application/json' })
      const timer = setInterval(() => response.write('x'.repeat(bytes)), everyMs)
      response.once('close', () => clearInterval(timer))
    } else if (at === '/headers') {
      response.writeHead(200, { 'x-much': 'x'.repeat(20_000) }).end('{}')
    } else if (at === '/hang' || (hangs !== '' && at.endsWith(hangs))) held.push(response)
    else response.setHeader('content-type', 'application/json').end(JSON.stringify(metadata))
  },
})
const issuer = receiver.url.slice(0, -1)
const metadata = {
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  jwks_uri: `${issuer}/keys`,
}
const env = { WEBHOOK_CA_FILE: receiver.caFile, WEBHOOK_ALLOWED_CIDRS: '127.0.0.1' }
const harness = await startHarness({ env: { ...env, LOG_LEVEL: 'silent' } })
const project = await harness.project()
const { admin, app } = project
await admin.put('/oauth/redirects', { addresses: [appAddress] })
await admin.put('/oauth/providers/slow', { issuer, client_id: 'x', client_secret: 'y' })
const letGo = () => {
  for (const response of held.splice(0)) response.socket?.destroy()
}
afterEach(() => {
  hangs = ''
  letGo()
})
afterAll(async () => {
  await harness.stop()
  await receiver.close()
})

const begin = () => app.post('/client/auth/oauth/begin', { provider: 'slow', code_challenge: newPkce().challenge })
/** Connections of the server that are in the middle of anything, in the project and in control. */
const atWork = async () => {
  const [{ count }] = await project.sql(
    `select count(*)::int as count from pg_stat_activity
      where backend_type = 'client backend' and pid <> pg_backend_pid() and datname = current_database()
        and (state <> 'idle' or wait_event_type = 'Lock')`,
  )
  return count
}

test('a request ends after its time, however its answer comes', async () => {
  const outbound = createOutbound({
    allowedCidrs: parseAllowedCidrs('127.0.0.1'),
    caFile: receiver.caFile,
    timeoutMs: 300,
  })
  const get = { method: 'GET', headers: {} } as const
  // one that takes the connection, and says nothing of TLS
  const sockets: Socket[] = []
  const silent = createServer((socket) => void sockets.push(socket.on('error', () => undefined)))
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const { port } = silent.address() as { port: number }
  for (const url of [`${receiver.url}hang`, `${receiver.url}drip`, `https://127.0.0.1:${port}/`])
    await expect(outbound.fetch(url, get), url).rejects.toThrow('timeout')
  await expect(outbound.fetch(`${receiver.url}endless`, get)).rejects.toThrow('response is too large')
  await expect(outbound.fetch(`${receiver.url}headers`, get)).rejects.toThrow('response headers are too large')
  await outbound.close()
  for (const socket of sockets) socket.destroy()
  await new Promise((resolve) => silent.close(resolve))
})

test('while discovery hangs no connection is held, the provider is asked once, and the failure has a name', async () => {
  hangs = '/.well-known/openid-configuration'
  const asked = Promise.all(Array.from({ length: 12 }, begin))
  await expect.poll(() => held.length).toBe(1)
  expect(await atWork()).toBe(0)
  // the project serves others, of whom there are more than its pool has connections
  const others = await Promise.all(Array.from({ length: 30 }, () => project.user()))
  expect(others).toHaveLength(30)
  expect(await project.sql('select from app.oauth_flows')).toEqual([])
  letGo()
  for (const answer of await asked) expectRefusal(answer, 503, 'SERVICE_UNAVAILABLE')
  expect(await project.sql('select from app.oauth_flows')).toEqual([])
})

test('while the token endpoint hangs no connection is held, and the app is told', async () => {
  const { data } = await begin()
  const state = new URL(data.url).searchParams.get('state')
  hangs = '/token'
  const callback = `${harness.url}/p/${project.id}/auth/v1/callback?code=abc&state=${state}`
  const answered = fetch(callback, { redirect: 'manual' })
  await expect.poll(() => held.length).toBe(1)
  expect(await atWork()).toBe(0)
  expect((await project.user()).id).toBeTruthy()
  letGo()
  const location = new URL((await answered).headers.get('location') ?? '')
  expect(Object.fromEntries(location.searchParams)).toMatchObject({
    error: 'server_error',
    error_code: 'bad_oauth_callback',
  })
  // the state is spent: the provider may have taken the code
  const again = new URL((await fetch(callback, { redirect: 'manual' })).headers.get('location') ?? '')
  expect(again.searchParams.get('error_code')).toBe('bad_oauth_state')
})
