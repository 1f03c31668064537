// npm run bench:tenants: what a tenant database costs to make and to keep, and what making and reloading them costs others.
import { rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { controlName, tenantName } from '#server/database/names.ts'
import { ask, endServer, type ServerProcess, startServer, temporaryFolder } from '#test/support/process.ts'
import { type Child, startChild } from './support/child.ts'
import { postgresMemory, requireProc } from './support/cpu.ts'
import {
  createTenant,
  createTenants,
  type Developer,
  type Disk,
  idleMemory,
  type Memory,
  signUp,
  type Tenant,
  tenantDisk,
} from './support/fleet.ts'
import { asAdmin, type Installation, install, signIn } from './support/installation.ts'
import { figure, median, percentile, table } from './support/numbers.ts'
import { type Changed, type Copy, copyProgram, profileReload, reload } from './support/reload.ts'
import { type Aim, aimLine, circumstances, publish, say } from './support/results.ts'
import { sizesOf } from './support/sizes.ts'
import type { Steady, SteadyCommand, Target } from './support/steady.ts'

const isShort = process.argv.includes('--short')
const most = Number(/^\d+$/.exec(process.argv[process.argv.indexOf('--most') + 1] ?? '')?.[0] ?? (isShort ? 20 : 500))
const stages = [...new Set([0, Math.min(100, most), most])]
const timed = isShort ? 5 : 20
/** Turns of one busy tenant, alone and then while this many others are made. */
const turns = isShort ? 2 : 5
const created = isShort ? 4 : 10
const quietSeconds = isShort ? 2 : 5

type World = {
  readonly installation: Installation
  readonly server: ServerProcess
  readonly developer: Developer
  readonly steady: Child
  readonly tenants: Tenant[]
  /** The program as it was when the server started, and changed. */
  readonly programs: Readonly<Record<Changed, Copy>>
}

type Stage = {
  readonly present: number
  readonly milliseconds: readonly number[]
  readonly disk: Disk
  readonly memory: Memory
}

const fillTo = async ({ server, developer, tenants }: World, count: number): Promise<void> => {
  while (tenants.length < count) {
    tenants.push(...(await createTenants(server, developer, Math.min(50, count - tenants.length))))
    say(`${tenants.length} of ${count} tenants`)
  }
}

const measureStage = async (world: World, times = timed): Promise<Stage> => {
  const { installation, server, developer, tenants } = world
  const present = tenants.length
  const memory = await idleMemory(installation)
  const milliseconds: number[] = []
  for (let count = 0; count < times; count += 1) {
    const tenant = await createTenant(server, developer)
    tenants.push(tenant)
    milliseconds.push(tenant.milliseconds)
  }
  return { present, milliseconds, disk: await tenantDisk(installation), memory }
}

/** Load on these targets while `work` goes on. */
const under = async <T>(
  { steady }: World,
  targets: readonly Target[],
  perSecond: number,
  work: () => Promise<T>,
): Promise<{ result: T; load: Steady }> => {
  await steady.ask({ kind: 'begin', targets, perSecond } satisfies SteadyCommand)
  const result = await work().catch(async (error) => {
    await steady.ask({ kind: 'end' } satisfies SteadyCommand)
    throw error
  })
  return { result, load: await steady.ask<Steady>({ kind: 'end' } satisfies SteadyCommand) }
}

const reader = async ({ server }: World, tenant: Tenant): Promise<Target> => ({
  url: `${server.url}/v1/client/users/me`,
  method: 'GET',
  headers: (await signIn(server.url, tenant.key)).headers,
})

const writer = ({ url, headers }: Target): Target => ({
  url: url.replace('/users/me', '/events'),
  method: 'POST',
  headers: { ...headers, 'content-type': 'application/json' },
  body: JSON.stringify({ event_name: 'lesson_completed', properties: { lesson: 3 } }),
})

type Busy = { readonly alone: readonly Steady[]; readonly during: readonly Steady[]; readonly seconds: number }

/** One busy tenant alone and while others are made, by turns. */
const measureBusy = async (world: World): Promise<Busy> => {
  const { server, developer, tenants } = world
  const first = tenants[0] ?? (await createTenant(server, developer))
  const targets = [await reader(world, first)]
  const [alone, during]: [Steady[], Steady[]] = [[], []]
  let seconds = 0
  await under(world, targets, 200, () => sleep(2000))
  for (let turn = 0; turn < turns; turn += 1) {
    alone.push((await under(world, targets, 200, () => sleep(quietSeconds * 1000))).load)
    const { load } = await under(world, targets, 200, async () => {
      const began = performance.now()
      tenants.push(...(await createTenants(server, developer, created)))
      seconds += (performance.now() - began) / 1000
    })
    during.push(load)
  }
  return { alone, during, seconds }
}

type Use = { readonly tenants: number; readonly processes: number; readonly bytes: number }

/** What ten tenants add to Postgres's memory while each has a user at work. */
const measureUse = async (world: World, targets: readonly Target[]): Promise<Use> => {
  const idle = await idleMemory(world.installation)
  await under(world, targets, 50, () => sleep(2000))
  const { bytes, processes } = postgresMemory(world.installation.postmaster)
  return { tenants: targets.length / 2, processes: processes - idle.processes, bytes: bytes - idle.bytes }
}

type Reload = {
  readonly what: string
  readonly tenants: number
  readonly seconds: number
  readonly postgresSeconds: number
  readonly load: Steady | null
}

/** Brings every tenant to a changed program, and back again. */
const reloadTo = async (
  world: World,
  changed: Changed,
  targets: readonly Target[] | null,
  command: 'reload' | 'migrate' = 'reload',
): Promise<Reload> => {
  const { installation, programs, tenants } = world
  const work = () => reload(programs[changed].folder, installation, command)
  const { result, load } = targets
    ? await under(world, targets, 200, async () => {
        await sleep(1000)
        const reloaded = await work()
        await sleep(1000)
        return reloaded
      })
    : { result: await work(), load: null }
  say(`${changed}: ${figure(result.seconds)} s; ${result.said.trim().split('\n').at(-1)}`)
  return { what: changed, tenants: tenants.length, ...result, load }
}

/** Each change and back again: with ten tenants, with ten of many under load, and a migration, which has no way back. */
const measureReload = async (world: World, targets: readonly Target[], many: number): Promise<Reload[]> => {
  const measured = [await reloadTo(world, 'one policy', null), await reloadTo(world, 'nothing', null)]
  await fillTo(world, many)
  for (const changed of ['one area', 'every file', 'every definition'] as const)
    measured.push(await reloadTo(world, changed, targets), await reloadTo(world, 'nothing', targets))
  return measured
}

type Start = { readonly listening: number; readonly healthy: number; readonly warm: number }

const secondsSince = (began: number) => (performance.now() - began) / 1000

/**
 * A server with a folder of its own and nothing in it, Postgres included, to the moment that it listens and to that at which /health is content, which is
 * when projects can be made; and the next start on the same data.
 */
const measureStart = async (): Promise<Start[]> => {
  const starts: Start[] = []
  for (let turn = 0; turn < (isShort ? 1 : 3); turn += 1) {
    const dataDir = await temporaryFolder()
    const began = performance.now()
    const server = await startServer({ DATA_DIR: dataDir, LOG_LEVEL: 'warn' })
    const listening = secondsSince(began)
    while ((await ask(server.url, 'GET', '/health')).status !== 200) await sleep(5)
    const healthy = secondsSince(began)
    await endServer(server)
    const again = performance.now()
    const next = await startServer({ DATA_DIR: dataDir, LOG_LEVEL: 'warn' })
    starts.push({ listening, healthy, warm: secondsSince(again) })
    await endServer(next)
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 })
  }
  return starts
}

/** Where the time of a reload goes in a tenant after the first. */
const profileOf = async ({ installation, tenants, programs }: World): Promise<string> => {
  const [first = '', second = ''] = tenants.map(({ projectId }) => tenantName('trellis', projectId))
  const statements = await profileReload(installation, [first, second], programs['every definition'].folder)
  return `#### Profile of one tenant, every definition changed\n\n${statements}`
}

const megabytes = (bytes: number) => figure(bytes / 2 ** 20)

const stageTable = (measured: readonly Stage[]): string =>
  table(
    [
      'tenants present',
      'ready: median ms',
      'p95 ms',
      'database MB',
      'on disk MB',
      'files',
      'checkpoint s',
      'Postgres idle, Pss MB',
    ],
    measured.map(({ present, milliseconds, disk, memory }) => [
      String(present),
      figure(median(milliseconds)),
      figure(percentile(milliseconds, 0.95)),
      megabytes(disk.databaseSize),
      megabytes(disk.onDisk),
      figure(disk.files),
      figure(disk.checkpointMs / 1000),
      `${megabytes(memory.bytes)} in ${memory.processes} processes`,
    ]),
  )

const busyTable = ({ alone, during, seconds }: Busy): string => {
  const row = (name: string, loads: readonly Steady[]) => {
    const latencies = loads.flatMap((load) => load.latencies)
    return [name, String(latencies.length), ...latencyCells(latencies)]
  }
  const made = `while ${turns * created} others are made, 4 at a time (${figure(seconds)} s)`
  return table(
    ['one tenant, GET me 200 times a second', 'requests', 'p50 ms', 'p99 ms', 'longest ms'],
    [row('alone', alone), row(made, during)],
  )
}

const latencyCells = (latencies: readonly number[]) => [
  figure(percentile(latencies, 0.5)),
  figure(percentile(latencies, 0.99)),
  figure(percentile(latencies, 1)),
]

const failuresOf = ({ statuses }: Steady) =>
  Object.entries(statuses).reduce((sum, [status, count]) => sum + (/^5|failed/.test(status) ? count : 0), 0)

const reloadTable = (measured: readonly Reload[]): string =>
  table(
    [
      'changed',
      'tenants',
      'seconds',
      'Postgres CPU s',
      'ms a tenant',
      'requests meanwhile',
      '5xx or no answer',
      'p50 ms',
      'p99 ms',
      'longest ms',
    ],
    measured.map(({ what, tenants, seconds, postgresSeconds, load }) => [
      what === 'nothing' ? 'and back' : what,
      String(tenants),
      figure(seconds),
      figure(postgresSeconds),
      figure((seconds * 1000) / tenants),
      ...(load
        ? [String(load.latencies.length), String(failuresOf(load)), ...latencyCells(load.latencies)]
        : ['', '', '', '', '']),
    ]),
  )

const aimsOf = (stagesMeasured: readonly Stage[], measured: readonly Reload[], starts: readonly Start[]): Aim[] => {
  const [listening = 0, healthy = 0, warm = 0] = (['listening', 'healthy', 'warm'] as const).map((moment) =>
    median(starts.map((start) => start[moment])),
  )
  const ready = stagesMeasured.map(({ present, milliseconds }): Aim => {
    const middle = median(milliseconds)
    return {
      text: `ready after ${figure(middle)} ms, median, with ${present} tenants (aim: under 400)`,
      isMet: middle < 400,
    }
  })
  const limits: Partial<Record<string, (tenants: number) => number>> = {
    'one policy': () => 2,
    'every file': (tenants) => Math.max(2, tenants * 0.15),
    'every definition': (tenants) => Math.max(2, tenants * 0.5),
    'a migration': (tenants) => Math.max(2, tenants * 0.2),
  }
  const reloading = measured.flatMap(({ what, tenants, seconds, load }): Aim[] => {
    const limit = limits[what]?.(tenants)
    if (limit === undefined) return []
    const failures = load ? failuresOf(load) : 0
    const text = `${what} in ${tenants} tenants${load ? ', ten under load' : ''}: ${figure(seconds)} s and ${failures} answers 5xx (aim: under ${figure(limit)} s, none)`
    return [{ text, isMet: seconds < limit && failures === 0 }]
  })
  const [disk] = stagesMeasured
  const [reloaded] = stagesMeasured.slice(-1)
  return [
    {
      text: `first start to listening, median: ${figure(listening)} s (aim: under 3), and to a template of which projects are made: ${figure(healthy)} s`,
      isMet: listening < 3,
    },
    { text: `warm start to listening, median: ${figure(warm)} s (aim: under 1)`, isMet: warm < 1 },
    ...ready,
    ...reloading,
    {
      text: `an empty tenant has ${megabytes(disk?.disk.databaseSize ?? 0)} MB, and ${megabytes(reloaded?.disk.databaseSize ?? 0)} MB as the mean after these reloads (aim: under 24)`,
      isMet: (disk?.disk.databaseSize ?? 0) < 24 * 2 ** 20,
      floor:
        '7.5 MB are the catalog of an empty database; the functions and their text are most of the rest, as the table shows',
    },
  ]
}

const notes = `\`ready\` is what a developer waits: from POST /v1/admin/projects to the first status that says ready, asked every 5 ms, one project
after another, ${timed} of them (10 where there are no others yet). Disk is the mean of 20 tenants after a checkpoint, in whole blocks. The memory of an idle Postgres grows at first because its
shared buffers fill. Postgres is durable here (fsync on). A first start has no data, and finds the
modules that an earlier start has compiled.`

const measureAll = async (world: World) => {
  const start = await measureStart()
  // ten, of which a policy is changed first
  const measured: Stage[] = [await measureStage(world, Math.min(timed, 10))]
  const sizes = await sizesOf(world.installation, tenantName('trellis', world.tenants[0]?.projectId ?? ''))
  const [, some = 0, all = 0] = [...stages, stages.at(-1)]
  await fillTo(world, 10)
  const ten = await Promise.all(world.tenants.slice(0, 10).map((tenant) => reader(world, tenant)))
  const targets = ten.flatMap((target) => [target, writer(target)])
  const reloads = await measureReload(world, targets, some)
  const use = await measureUse(world, targets)
  if (some > 0) measured.push(await measureStage(world))
  const busy = await measureBusy(world)
  if (all > some) {
    await fillTo(world, all)
    measured.push(await measureStage(world))
  }
  // after all that the server does: it is of the version before
  reloads.push(await reloadTo(world, 'a migration', null, 'migrate'))
  const isMissed = aimsOf(measured, reloads, start).some(({ isMet }) => isMet === false)
  // last: it leaves two tenants as somebody who changes them by hand would
  const profile = isMissed ? [await profileOf(world)] : []
  return { start, measured, sizes, reloads, use, busy, profile }
}

const changes: readonly Changed[] = [
  'nothing',
  'one area',
  'every file',
  'every definition',
  'one policy',
  'a migration',
]

const main = async () => {
  requireProc()
  const installation = await install()
  const steady = startChild('steady.ts')
  const copies = await Promise.all(changes.map(async (changed) => [changed, await copyProgram(changed)] as const))
  const programs = Object.fromEntries(copies) as Record<Changed, Copy>
  try {
    const server = await installation.serve()
    await asAdmin(installation.cluster, controlName('trellis'), 'update app.clusters set capacity = 100000')
    const world: World = { installation, server, developer: await signUp(server), steady, tenants: [], programs }
    const { start, measured, sizes, reloads, use, busy, profile } = await measureAll(world)
    const perConnection = `${megabytes(use.bytes / use.processes)} MB for each of ${use.processes} connections`
    const parts = [
      '## bench:tenants',
      await circumstances(`npm run bench:tenants${most === 500 ? '' : ` -- --most ${most}`}`, {
        Postgres: installation.postgresVersion,
      }),
      notes,
      stageTable(measured),
      `${use.tenants} tenants in use at once (reads and events of one user each) add ${megabytes(use.bytes)} MB: ${perConnection}.`,
      busyTable(busy),
      'Changes of functions and policies by `db:reload`, with 200 requests a second on ten tenants where requests are counted, half of them events; the migration by `db:migrate`:',
      reloadTable(reloads),
      'An empty tenant, area by area. Functions are rows of the catalog, so their text is a part of its size:',
      sizes,
      aimsOf(measured, reloads, start).map(aimLine).join('\n'),
      ...profile,
    ]
    await publish({ name: 'bench:tenants', isShort, text: parts.join('\n\n') })
  } finally {
    await steady.end()
    await installation.end()
    for (const copy of Object.values(programs)) await copy.remove()
  }
}

await main()
