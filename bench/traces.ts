// npm run bench:traces: what traces cost a request. Servers without a collector, with one that gets every trace, and with one that gets a tenth, take
// turns; what counts is the CPU time of their processes for a request.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { performance } from 'node:perf_hooks'
import { createTestProject } from '#test/support/process.ts'
import { activeSpan, noSpan, startSpan, traceFields, within } from '../server/telemetry/spans.ts'
import { startChild } from './support/child.ts'
import { processCpu } from './support/cpu.ts'
import { install } from './support/installation.ts'
import type { Load, Loaded } from './support/loader.ts'
import { figure, median, medianRatio, table } from './support/numbers.ts'
import { circumstances, say, writeSection } from './support/results.ts'

const isShort = process.argv.includes('--short')
const [rounds, seconds] = isShort ? [3, 2] : [9, 3]

/** What a call does where there is no trace, in nanoseconds: the parts that a request has, one after the other. */
const offNanoseconds = (): number => {
  const times = 1_000_000
  const part = () => {
    startSpan('', 'client').end()
    activeSpan()
    traceFields()
    return within(noSpan, () => 1)
  }
  for (let warming = 0; warming < times; warming += 1) part()
  const began = performance.now()
  for (let n = 0; n < times; n += 1) part()
  return ((performance.now() - began) * 1e6) / times
}

const installation = await install()
const collector = createServer((request, response) => {
  request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'))
}).listen(0, '127.0.0.1')
await once(collector, 'listening')
const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
const exporting = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }
const environments: Readonly<Record<string, Record<string, string>>> = {
  'without a collector': {},
  'metrics alone': { ...exporting, OTEL_TRACES_EXPORTER: 'none' },
  'every trace': exporting,
  'a tenth of the traces': { ...exporting, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.1' },
}
const servers = new Map<string, { readonly url: string; readonly pid: number; readonly perRequest: number[] }>()
for (const [name, env] of Object.entries(environments)) {
  const { url, child } = await installation.serve({ ...env, WORKER: 'off' })
  servers.set(name, { url, pid: child.pid ?? 0, perRequest: [] })
}
const worker = await installation.serve()
const { user } = await createTestProject(worker.url)
say('the servers are ready')

const loader = startChild('loader.ts')
for (let round = 0; round <= rounds; round += 1) {
  for (const { url, pid, perRequest } of servers.values()) {
    const before = processCpu(pid)
    const load: Load = { url: `${url}/v1/client/users/me`, method: 'GET', headers: [user], connections: 16, seconds }
    const { requests } = await loader.ask<Loaded>(load)
    // the first round warms up
    if (round > 0) perRequest.push((processCpu(pid) - before) / requests)
  }
  say(`round ${round} of ${rounds}`)
}
const nanoseconds = offNanoseconds()
await loader.end()
await installation.end()
collector.close()

const [[, base] = []] = servers
const rows = [...servers].map(([name, { perRequest }]) => [
  name,
  figure(median(perRequest)),
  figure((medianRatio(perRequest, base?.perRequest ?? []) - 1) * 100),
])
const share = nanoseconds / 10 / median(base?.perRequest ?? [])
const text = [
  await circumstances('npm run bench:traces', { Postgres: installation.postgresVersion }),
  '',
  table(['`GET /v1/client/users/me`, 16 connections', 'CPU us a request', '% more'], rows),
  '',
  `Where there is no trace, what a request does for one takes ${figure(nanoseconds)} ns: ${figure(share)} % of its CPU time.`,
].join('\n')
say(text)
if (!isShort) await writeSection('traces', text)
