// npm run bench:push: how fast a campaign is planned and sent, from its start to the answers of a provider that takes a millisecond.
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createHttp2 } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { availableParallelism, loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { tenantName } from '#server/database/names.ts'
import { startHttpsReceiver } from '#test/support/https.ts'
import { ask, createTestProject } from '#test/support/process.ts'
import { postgresCpu, processCpu, requireProc } from './support/cpu.ts'
import { asAdmin, install } from './support/installation.ts'
import { figure, median, table } from './support/numbers.ts'
import { aimLine, circumstances, publish, say } from './support/results.ts'

const isShort = process.argv.includes('--short')
const users = isShort ? 5_000 : 100_000
const rounds = isShort ? 1 : 3
const answerMs = 1

/** Providers in this process: they answer after a millisecond and count. */
const startProviders = async () => {
  let answered = 0
  const fcm = createServer((request, response) => {
    request.resume()
    setTimeout(() => {
      answered += 1
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"name":"projects/bench/messages/1"}')
    }, answerMs)
  })
  const apns = createHttp2({ settings: { maxConcurrentStreams: 1000 } })
  apns.on('stream', (stream) => {
    stream.on('error', () => undefined)
    stream.resume()
    setTimeout(() => {
      answered += 1
      stream.respond({ ':status': 200 })
      stream.end()
    }, answerMs)
  })
  for (const server of [fcm, apns]) {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  }
  const urlOf = (server: { address(): unknown }) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { fcm: urlOf(fcm), apns: urlOf(apns), answered: () => answered }
}

const fill = (place: Place, platform: string) =>
  place.sql(
    `with made as (insert into app.users (display_name, timezone) select 'user ' || n, 'Europe/Berlin' from generate_series(1, $1::int) n returning id)
     insert into app.push_tokens (app_user_id, token, platform) select m.id, 'token-' || m.id, $2 from made m`,
    [users, platform],
  )

type Place = { sql(text: string, values?: unknown[]): Promise<unknown> }
type Round = { readonly planned: number; readonly sent: number; readonly server: number; readonly postgres: number }

requireProc()
const [load = 0] = loadavg()
/** The rate is one of two cores that nobody else uses; CPU time is what it is under any load. */
const isQuiet = load <= availableParallelism()
const installation = await install()
const google = await startHttpsReceiver({
  handler: (_request, response) =>
    response.end(JSON.stringify({ access_token: 'token', expires_in: 3600, token_type: 'Bearer' })),
})
try {
  const providers = await startProviders()
  const server = await installation.serve({
    APNS_BASE_URL: providers.apns,
    FCM_BASE_URL: providers.fcm,
    WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8',
    WEBHOOK_CA_FILE: google.caFile,
  })
  const pid = server.child.pid ?? 0
  const pem = (pair: { privateKey: ReturnType<typeof generateKeyPairSync>['privateKey'] }) =>
    pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const configs = {
    ios: {
      provider: 'apns',
      config: {
        key_id: 'k',
        team_id: 't',
        bundle_id: 'b',
        private_key: pem(generateKeyPairSync('ec', { namedCurve: 'prime256v1' })),
      },
    },
    android: {
      provider: 'fcm',
      config: {
        service_account_json: {
          project_id: 'bench',
          client_email: 'a@b.c',
          private_key: pem(generateKeyPairSync('rsa', { modulusLength: 2048 })),
          token_uri: google.url,
        },
      },
    },
  }

  /** One campaign to everybody: seconds until the last delivery was planned, and until the provider had answered for all. */
  const measure = async (platform: 'ios' | 'android', inbox: boolean): Promise<Round> => {
    const scenario = await createTestProject(server.url)
    const path = `/v1/admin/projects/${scenario.projectId}`
    const admin = (method: string, to: string, body?: unknown) =>
      ask(server.url, method, path + to, body, scenario.developer)
    const database = tenantName('trellis', scenario.projectId)
    const place: Place = { sql: (text, values = []) => asAdmin(installation.cluster, database, text, values) }
    await admin('POST', '/integrations', configs[platform])
    // the ceiling of a project is a thousand a second
    await place.sql(`select internal.set_setting('push.sends_per_second', '1000000')`)
    await fill(place, platform)
    await place.sql('analyze')
    const before = providers.answered()
    const cpu = { server: processCpu(pid), postgres: postgresCpu(installation.postmaster) }
    const message = { title: 'Hello, {{display_name|friend}}', body: 'A message.', data: { n: 1 } }
    const began = performance.now()
    const made = await admin('POST', '/push/campaigns', {
      name: 'bench',
      message,
      audience: { all: true },
      inbox,
      send_now: true,
    })
    if (made.status !== 202) throw new Error(JSON.stringify(made.body))
    let planned = 0
    for (;;) {
      const { body } = await admin('GET', `/push/campaigns/${made.body.data.id}`)
      const { status, counts } = body.data
      if (!planned && counts.targeted >= users) planned = (performance.now() - began) / 1000
      if (status === 'sent') {
        const sent = (performance.now() - began) / 1000
        if (counts.sent !== users || providers.answered() - before !== users) throw new Error(JSON.stringify(body.data))
        return {
          planned,
          sent,
          server: (processCpu(pid) - cpu.server) / users,
          postgres: (postgresCpu(installation.postmaster) - cpu.postgres) / users,
        }
      }
      await sleep(100)
    }
  }

  const kinds = [
    ['FCM, HTTP/1.1', 'android', true],
    ['APNs, HTTP/2', 'ios', true],
    ['FCM, without inboxes', 'android', false],
  ] as const
  const results: { name: string; rounds: Round[] }[] = kinds.map(([name]) => ({ name, rounds: [] }))
  for (let round = 1; round <= rounds; round += 1)
    for (const [place, [name, platform, inbox]] of kinds.entries()) {
      const one = await measure(platform, inbox)
      say(`${name}, round ${round}: planned in ${figure(one.planned)} s, sent in ${figure(one.sent)} s`)
      say(`microseconds of CPU a recipient: server ${figure(one.server)}, Postgres ${figure(one.postgres)}`)
      results[place]?.rounds.push(one)
    }
  const rate = (of: readonly Round[]) => users / median(of.map(({ sent }) => sent))
  const slowest = Math.min(...results.map((each) => rate(each.rounds)))
  const text = `## bench:push

${await circumstances('npm run bench:push', { Postgres: installation.postgresVersion })}

A campaign to ${users} users with a device each, from the request that starts it to the last recorded answer of a provider that takes ${answerMs} ms. The providers, the
server with its worker, and Postgres (durable) share the machine. CPU is of the server with its worker, and of Postgres, in
microseconds a recipient. Medians of ${rounds} rounds.

${table(
  ['provider', 'planned, seconds', 'sent, seconds', 'recipients a second', 'CPU of the server', 'CPU of Postgres'],
  results.map((each) => [
    each.name,
    figure(median(each.rounds.map(({ planned }) => planned))),
    figure(median(each.rounds.map(({ sent }) => sent))),
    figure(rate(each.rounds)),
    figure(median(each.rounds.map(({ server }) => server))),
    figure(median(each.rounds.map(({ postgres }) => postgres))),
  ]),
)}

${aimLine({
  text: `${Math.round(slowest)} recipients a second with the slowest of them (aim: 5000), with a load of ${figure(load)} before the run${isQuiet ? '' : ': too much for a finding'}`,
  isMet: isQuiet ? slowest >= 5000 : null,
})}`
  await publish({ name: 'bench:push', isShort, text })
} finally {
  await installation.end()
  await google.close()
}
process.exit(0)
