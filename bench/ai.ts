// npm run bench:ai: what Trellis adds to a streamed answer of an AI provider: time to its first piece, and memory while many streams are open.
import { readFileSync } from 'node:fs'
import { Agent, request } from 'undici'
import { ask, createTestProject, endPrograms } from '#test/support/process.ts'
import type { AiProviderCommand } from './support/ai_provider.ts'
import { type Child, startChild } from './support/child.ts'
import { requireProc } from './support/cpu.ts'
import { install } from './support/installation.ts'
import { figure, medianOf, percentile, table } from './support/numbers.ts'
import { type Aim, aimLine, circumstances, publish, say } from './support/results.ts'

const isShort = process.argv.includes('--short')
const rounds = isShort ? 1 : 5
const callsPerRound = isShort ? 50 : 150
const delayMs = 20
const streams = 500

const memoryOf = (pid: number): number => {
  const [, kilobytes] = /^Rss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')) ?? []
  return Number(kilobytes ?? 0) * 1024
}

type Side = { readonly url: string; readonly headers: Readonly<Record<string, string>>; readonly body: string }

const agent = new Agent({ connections: null, pipelining: 1 })

/** Opens a stream and waits for its first piece: how long that took, and its body. */
const firstPiece = async ({ url, headers, body }: Side) => {
  const began = performance.now()
  const response = await request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
    dispatcher: agent,
  })
  const iterator = response.body[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  const { value } = await iterator.next()
  const ms = performance.now() - began
  if (response.statusCode !== 200 || !value?.includes('Hello'))
    throw new Error(`${url} answered ${response.statusCode}: ${value}`)
  return { ms, iterator, body: response.body }
}

const drain = async (iterator: AsyncIterator<Buffer>) => {
  while (!(await iterator.next()).done);
}

type Round = { readonly direct: readonly number[]; readonly ours: readonly number[] }

/** Both sides in turn, one call at a time: the path is measured, not a queue. */
const round = async (direct: Side, ours: Side): Promise<Round> => {
  const times = { direct: [] as number[], ours: [] as number[] }
  for (let call = 0; call < callsPerRound; call += 1) {
    for (const [name, side] of [
      ['direct', direct],
      ['ours', ours],
    ] as const) {
      const { ms, iterator } = await firstPiece(side)
      times[name].push(ms)
      await drain(iterator)
    }
  }
  return times
}

const openMany = async (side: Side, count: number) => {
  const opened: Awaited<ReturnType<typeof firstPiece>>[] = []
  // a few at a time: how they begin is not measured
  for (let from = 0; from < count; from += 25)
    opened.push(...(await Promise.all(Array.from({ length: Math.min(25, count - from) }, () => firstPiece(side)))))
  return opened
}

const settle = () => new Promise((resolve) => setTimeout(resolve, 3000))

/** Bytes of memory of the server for each stream that is open. */
const memory = async (provider: Child, pid: number, ours: Side): Promise<number> => {
  await provider.ask({ kind: 'behave', delayMs: 0, staysOpen: true } satisfies AiProviderCommand)
  const run = async (count: number) => {
    const opened = await openMany(ours, count)
    await settle()
    const bytes = memoryOf(pid)
    await provider.ask({ kind: 'release' } satisfies AiProviderCommand)
    await Promise.all(opened.map(({ iterator }) => drain(iterator)))
    await settle()
    return bytes
  }
  // the heap grows to what such a load needs
  await run(100)
  const before = memoryOf(pid)
  return ((await run(streams)) - before) / streams
}

const added = (one: Round, share: number) => percentile(one.ours, share) - percentile(one.direct, share)

requireProc()
const installation = await install()
const provider = startChild('ai_provider.ts')
try {
  const url = await provider.ask<string>({ kind: 'start' } satisfies AiProviderCommand)
  const server = await installation.serve({ OPENAI_BASE_URL: url, GENERAL_RATE_LIMITS: 'off' })
  const { developer, projectId, user } = await createTestProject(server.url)
  const base = `/v1/admin/projects/${projectId}/ai`
  await ask(server.url, 'POST', `${base}/providers`, { name: 'openai', api_key: 'a-key-for-the-bench' }, developer)
  const prompt = {
    provider: 'openai',
    model: 'gpt-4o-mini',
    system_prompt: 'Greet {{user.display_name}}.',
    client_invokable: true,
  }
  for (const name of ['plain', 'budgeted'])
    await ask(server.url, 'POST', `${base}/prompts`, { name, ...prompt }, developer)
  await ask(server.url, 'PUT', `${base}/prompts/budgeted/budget`, { budget_usd: 1_000_000 }, developer)
  const messages = [{ role: 'user', content: 'Hello there' }]
  const direct: Side = {
    url: `${url}/v1/chat/completions`,
    headers: {},
    body: JSON.stringify({ model: 'gpt-4o-mini', messages, stream: true }),
  }
  const of = (name: string): Side => ({
    url: `${server.url}/v1/client/ai/prompts/${name}/invoke`,
    headers: user,
    body: JSON.stringify({ messages, stream: true }),
  })
  await provider.ask({ kind: 'behave', delayMs, staysOpen: false } satisfies AiProviderCommand)
  const measured: Record<string, Round[]> = { plain: [], budgeted: [] }
  for (const name of ['plain', 'budgeted']) await round(direct, of(name))
  for (let n = 0; n < rounds; n += 1)
    for (const name of ['plain', 'budgeted']) {
      say(`round ${n + 1}, ${name}`)
      measured[name]?.push(await round(direct, of(name)))
    }
  say(`${streams} open streams`)
  const bytes = await memory(provider, server.child.pid ?? 0, of('plain'))
  const rows = Object.entries(measured).map(([name, done]) => [
    name === 'plain' ? 'a prompt without a budget' : 'a prompt under a budget',
    figure(medianOf(done, (one) => percentile(one.direct, 0.5))),
    figure(medianOf(done, (one) => percentile(one.ours, 0.5))),
    figure(medianOf(done, (one) => added(one, 0.5))),
    figure(medianOf(done, (one) => added(one, 0.95))),
  ])
  const p50 = medianOf(measured['plain'] ?? [], (one) => added(one, 0.5))
  const aims: Aim[] = [
    {
      text: `${figure(p50)} ms added to the first piece at p50; wanted under 5`,
      isMet: p50 < 5,
      floor:
        'the statement that admits a call (moderation, rates, budget, ceiling, reservation) takes 1.3 ms, and each way is a hop of HTTP more',
    },
    {
      text: `${figure(bytes / 1024)} KB for each of ${streams} open streams; wanted under 100`,
      isMet: bytes < 100 * 1024,
    },
  ]
  const text = `## AI: the first piece of a stream, and many open streams

A provider in another process sends its first piece ${delayMs} ms after a request. The client calls it directly and through Trellis in turn, one call at a time; through Trellis a call is admitted,
reserved and recorded in Postgres. Memory is that of the server process (resident) while ${streams} streams stay open after their first piece.

${table(['ms to the first piece', 'direct p50', 'through Trellis p50', 'added p50', 'added p95'], rows)}

${aims.map(aimLine).join('\n')}

${await circumstances('npm run bench:ai', { PostgreSQL: installation.postgresVersion })}`
  await publish({ name: 'ai', isShort, text })
} finally {
  await agent.destroy()
  await provider.end()
  await installation.end()
  await endPrograms()
}
