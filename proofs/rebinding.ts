// A name server that lies: a webhook's host has a public address when it is looked at, and 127.0.0.1 the next time. A receiver
// waits at 127.0.0.1:443, with a certificate that the server trusts; nothing may ever reach it. Needs root on Linux: the name server
// takes port 53, and the server runs with an /etc/resolv.conf of its own (unshare).
import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { root } from '#server/root.ts'
import { startHttpsReceiver } from '#test/support/https.ts'
import { ask, createTestProject, freePort } from '#test/support/process.ts'
import { install } from '../bench/support/installation.ts'
import { say } from '../bench/support/results.ts'
import { report } from './support/page.ts'

if (process.getuid?.() !== 0) {
  process.stderr.write('This proof takes port 53 and mounts a file: run it as root, on Linux.\n')
  process.exit(2)
}
const host = 'hooks.rebinding.example'
// of a block that is routed, though nobody answers there: a connection to it fails, which is as good as a stranger's
const publicAddress = '198.41.0.4'
const inside = '127.0.0.1'

/** Answers A questions about `host` by `answer`, and nothing else. */
const startNameServer = async (reply: (question: number) => readonly string[]) => {
  const socket = createSocket('udp4')
  const counts = { asked: 0 }
  socket.on('message', (message, { port, address }) => {
    // the name ends with a zero byte; type and class follow
    const end = message.indexOf(0, 12)
    const isA = message.readUInt16BE(end + 1) === 1
    const addresses = isA ? reply(counts.asked++) : []
    const head = Buffer.from(message.subarray(0, end + 5))
    head.writeUInt16BE(0x8180, 2)
    head.writeUInt16BE(addresses.length, 6)
    head.writeUInt32BE(0, 8)
    // a pointer to the name, type A, class IN, time to live 0, four bytes
    const records = addresses.map((one) =>
      Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...one.split('.').map(Number)]),
    )
    socket.send(Buffer.concat([head, ...records]), port, address)
  })
  socket.bind(53, inside)
  await once(socket, 'listening')
  return { counts, close: () => socket.close() }
}

let answer = (_question: number): readonly string[] => [publicAddress]
const names = await startNameServer((question) => answer(question))
const receiver = await startHttpsReceiver({ hostnames: [host], port: 443 })
const folder = await mkdtemp(join(tmpdir(), 'trellis-rebinding-'))
await writeFile(join(folder, 'resolv.conf'), `nameserver ${inside}\n`)

const installation = await install()
const port = String(await freePort())
const child = spawn(
  'unshare',
  [
    '--mount',
    'sh',
    '-c',
    `mount --bind ${join(folder, 'resolv.conf')} /etc/resolv.conf && exec "$0" "$1"`,
    process.execPath,
    join(root, 'server/main.ts'),
  ],
  {
    env: {
      PATH: process.env['PATH'],
      PORT: port,
      DATABASE_URL: installation.cluster.dsn,
      SECRETS_KEY: installation.secretsKey,
      DATA_DIR: installation.dataDir,
      WEBHOOK_CA_FILE: receiver.caFile,
      LOG_LEVEL: 'error',
    },
  },
)
let output = ''
for (const stream of [child.stdout, child.stderr])
  stream.on('data', (chunk) => {
    output += chunk
  })
while (!output.includes('Trellis is running')) {
  if (child.exitCode !== null) throw new Error(`the server has ended: ${output}`)
  await sleep(50)
}
const url = `http://127.0.0.1:${port}`
const scenario = await createTestProject(url)
const path = `/v1/admin/projects/${scenario.projectId}/webhooks`
const register = () =>
  ask(url, 'POST', path, { event_name: 'precious', target_url: `https://${host}/hook` }, scenario.developer)

say('a name that is private at once is refused; one that is public is taken')
answer = () => [inside]
const atOnce = await register()
answer = () => [publicAddress, inside]
const mixed = await register()
answer = () => [publicAddress]
const taken = await register()
const id = taken.body.data?.id as string

say('every second answer is 127.0.0.1, then every one')
const event = async () => {
  await ask(url, 'POST', '/v1/client/events', { event_name: 'precious' }, scenario.user)
}
answer = (question) => [question % 2 === 0 ? publicAddress : inside]
for (let round = 0; round < 10; round += 1) await event()
const tests = []
for (let round = 0; round < 4; round += 1)
  tests.push(await ask(url, 'POST', `${path}/${id}/test`, {}, scenario.developer))
answer = () => [inside]
for (let round = 0; round < 10; round += 1) await event()
const insideTest = await ask(url, 'POST', `${path}/${id}/test`, {}, scenario.developer)
await sleep(15_000)
const { body: deliveries } = await ask(url, 'GET', `${path}/${id}/deliveries?limit=100`, undefined, scenario.developer)
const ended = (deliveries.data as { status: string }[]).reduce<Record<string, number>>((sum, { status }) => {
  sum[status] = (sum[status] ?? 0) + 1
  return sum
}, {})

say('and the receiver is a real one: asked for by name, it answers')
const control = await ask(url, 'GET', '/health')
const reached = receiver.connections().total
const { asked } = names.counts
child.kill('SIGTERM')
await once(child, 'exit')
names.close()
await receiver.close()
await installation.end()
await rm(folder, { recursive: true })
await report('proof:rebinding', { Postgres: installation.postgresVersion }, [
  {
    text: `a name that answers ${inside}, alone or beside a public address, is refused: ${atOnce.status} ${atOnce.body.error?.code}, ${mixed.status} ${mixed.body.error?.code}; a public one is taken: ${taken.status}`,
    holds: [atOnce, mixed].every(({ body }) => body.error?.code === 'TARGET_URL_NOT_ALLOWED') && taken.status === 201,
  },
  {
    text: `20 events and ${tests.length + 1} test deliveries while the name answers one time a public address and one time ${inside}: deliveries ended ${JSON.stringify(ended)}, the name server was asked ${asked} times`,
    holds: (ended['delivered'] ?? 0) === 0 && (ended['failed'] ?? 0) > 0 && asked > 10 && control.status === 200,
  },
  {
    text: `a test delivery to a name that has become private answers ${insideTest.status} ${insideTest.body.error?.code}`,
    holds: insideTest.body.error?.code === 'TARGET_URL_NOT_ALLOWED',
  },
  { text: `${reached} connections reached the receiver at ${inside}:443`, holds: reached === 0 },
])
process.exit()
