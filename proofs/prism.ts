// The tests of routes run through a proxy that validates each request and each answer against the OpenAPI document
// (`prism proxy --errors`): whatever the document forbids the server refuses, and every answer is one that the document describes.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { loadAreas } from '#server/http/areas.ts'
import { openApi } from '#server/http/openapi.ts'
import { root } from '#server/root.ts'
import { idHeader, targetHeader } from '#test/support/prism.ts'
import { freePort } from '#test/support/process.ts'
import { say } from '../bench/support/results.ts'
import { installedTools } from '../scripts/tools.ts'

/** Files whose tests use most routes of their area in the way that clients do. */
const usual =
  'process/story achievements/achievements catalog/catalog challenges/challenges client_auth/client_auth config/config currencies/currencies entitlements/entitlements events/events feeds/feeds flags/flags friends/friends groups/groups inventory/inventory leaderboards/leaderboards media/media messaging/messaging moderation/reports moderation/rules onboarding/onboarding organizations/organizations projects/projects push_tokens/push_tokens referrals/referrals rewards/rewards roles/roles segments/segments streaks/streaks users/profile webhooks/webhooks xp/xp collections/rows collections/define billing/billing billing/usage promotion/promotion promotion/import control_webhooks/control_webhooks device_grants/device_grants github/github accounts/account_deletion ai/ai ai/invoke ai/budgets integrations/integrations monetization/monetization monetization/plan email/email email/campaigns email/templates push/push push/client media/admin media/jobs realtime/admin domains/domains operations/operations operator_tokens/delegation'
    .split(' ')
    .map((stem) => `test/${stem}.test.ts`)

/** Where the server takes more than the document promises, on purpose. */
const lenient: readonly { readonly path: RegExp; readonly detail: RegExp; readonly why: string }[] = [
  { path: /\/client\/events$/, detail: /occurred_at/, why: 'a date alone is its midnight, and null is as absent' },
  { path: /\/client\/events$/, detail: /event_name/, why: '`name` is the former name of event_name' },
  { path: /\/participants$/, detail: /user_id/, why: '`app_user_id` is the former name of user_id' },
  { path: /\/catalog\/import/, detail: /./, why: 'an import names what is wrong with each item in its answer' },
  { path: /./, detail: /reward/, why: 'a part of a reward that cannot be given is kept, and recorded as not given' },
  { path: /\/auth\/email\//, detail: /"email"/, why: 'spaces around an address are left out' },
]
const reasonOf = ({ path, detail = '', status }: Found) =>
  status < 300
    ? lenient.find((one) => one.path.test(path.replace(/\?.*/, '')) && one.detail.test(detail))?.why
    : undefined

type Found = { what: string; status: number; method: string; path: string; detail?: string; sent?: string }
const found: Found[] = []
let passed = 0
/** The last answers, for a client whose answer prism has replaced. */
const kept = new Map<string, string>()
const keep = (id: string, answer: string) => {
  kept.set(id, answer)
  if (kept.size > 1000) kept.delete(kept.keys().next().value ?? '')
}

const bytesOf = async (stream: IncomingMessage) => Buffer.concat(await stream.toArray())

/** Passes a request of prism on to the server that it is for: each test file has its own. */
const passOn = async (request: IncomingMessage, response: ServerResponse, target: string) => {
  const { [targetHeader]: _, [idHeader]: id, connection: __, ...headers } = request.headers
  const body = await bytesOf(request)
  const { hostname, port, host } = new URL(target)
  const on = httpRequest({ hostname, port, method: request.method, path: request.url, headers: { ...headers, host } })
  on.on('error', () => response.destroy())
  on.end(body)
  const [answer] = (await once(on, 'response')) as [IncomingMessage]
  const bytes = await bytesOf(answer)
  const text = answer.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes
  passed += 1
  keep(String(id), JSON.stringify({ status: answer.statusCode, received: answer.headers, text: text.toString() }))
  response.writeHead(answer.statusCode ?? 500, answer.headers)
  response.end(bytes)
}

const relay = createServer((request, response) => {
  const target = request.headers[targetHeader]
  const answer = async () => {
    if (typeof target === 'string') return passOn(request, response, target)
    if (request.url === '/found') found.push(JSON.parse((await bytesOf(request)).toString()) as Found)
    response.end(kept.get(request.url?.split('/')[2] ?? '') ?? '')
  }
  answer().catch(() => response.destroy())
})
relay.listen(0, '127.0.0.1')
await once(relay, 'listening')
const relayUrl = `http://127.0.0.1:${(relay.address() as AddressInfo).port}`

const folder = await mkdtemp(join(tmpdir(), 'trellis-prism-'))
const file = join(folder, 'openapi.json')
const port = await freePort()
await writeFile(file, JSON.stringify(await openApi(await loadAreas(), `http://127.0.0.1:${port}`)))
const program = join(await installedTools(), 'node_modules/@stoplight/prism-cli/dist/index.js')
const prism = spawn(process.execPath, [program, 'proxy', file, relayUrl, '--errors', '-p', String(port), '-v', 'info'])
const isListening = Promise.withResolvers<void>()
prism.stdout.on('data', (text: Buffer) => text.includes('Prism is listening') && isListening.resolve())
prism.on('exit', (code) => isListening.reject(new Error(`prism ended with ${code}`)))
prism.stderr.pipe(process.stderr)
await isListening.promise

const files = process.argv.length > 2 ? process.argv.slice(2) : usual
const tests = spawn(
  process.execPath,
  [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--maxWorkers=2', ...files],
  {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, TRELLIS_PRISM: `http://127.0.0.1:${port}`, TRELLIS_PRISM_RELAY: relayUrl },
  },
)
const [code] = (await once(tests, 'exit')) as [number | null]
prism.removeAllListeners('exit')
prism.kill()
relay.close()
relay.closeAllConnections()
await rm(folder, { recursive: true })

const told = new Map<string, Found & { times: number }>()
for (const one of found) {
  const path = one.path.replace(/\?.*/, '').replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '{id}')
  const key = `${one.method} ${path} ${one.what} ${one.detail}`
  told.set(key, { ...one, times: (told.get(key)?.times ?? 0) + 1 })
}
const [allowed, wrong] = [[...told.values()].filter(reasonOf), [...told.values()].filter((one) => !reasonOf(one))]
for (const one of allowed) say(`${one.method} ${one.path}: accepted, ${reasonOf(one)} (${one.times} times)`)
for (const { times, what, status, method, path, detail, sent } of wrong)
  say(`${method} ${path} ${status}: ${what} (${times} times)\n  ${detail}\n  ${(sent ?? '').slice(0, 300)}`)
say(`${passed} requests reached a server through the proxy; ${wrong.length} mismatches; the tests ended with ${code}`)
process.exit(code === 0 && wrong.length === 0 && passed > 0 ? 0 : 1)
