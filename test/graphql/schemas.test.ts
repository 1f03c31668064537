import { afterEach, expect, test, vi } from 'vitest'
import { ProcessEnded, type SchemaProcess } from '#server/graphql/schema_process.ts'
import { createSchemas, NotMade, NotThere, type SchemasOptions } from '#server/graphql/schemas.ts'

afterEach(() => {
  vi.useRealTimers()
})

/** Which schemas are made, by which process, and in which order, without processes. Each build ends when the test says so. */
const setUp = (options: Partial<SchemasOptions> = {}) => {
  let clock = 0
  let made = 0
  const failures: string[] = []
  const builds: {
    readonly process: number
    readonly project: string
    readonly hash: string
    readonly end: (error?: string | null, isUnreachable?: boolean) => void
  }[] = []
  const alive = new Map<number, { kill: () => void; runs: (() => void)[] }>()
  const start = (): SchemaProcess => {
    made += 1
    const number = made
    const { promise: gone, resolve } = Promise.withResolvers<void>()
    const waiting = new Set<(error: Error) => void>()
    const kill = () => {
      alive.delete(number)
      resolve()
      for (const reject of waiting) reject(new ProcessEnded('ended'))
      waiting.clear()
    }
    const runs: (() => void)[] = []
    alive.set(number, { kill, runs })
    const pending = <T>(begin: (resolve: (value: T) => void) => void) =>
      new Promise<T>((resolve, reject) => {
        waiting.add(reject)
        begin((value) => {
          waiting.delete(reject)
          resolve(value)
        })
      })
    return {
      pid: number,
      make: ({ asking, tables }) =>
        pending((resolve) =>
          builds.push({
            process: number,
            project: asking.projectId,
            hash: tables[0]?.name ?? '',
            end: (error = null, isUnreachable = false) => resolve({ error, isUnreachable }),
          }),
        ),
      run: ({ query }) =>
        query === 'slow'
          ? pending((resolve) => runs.push(() => resolve({ body: `${number}`, outcome: 'data' })))
          : Promise.resolve({ body: `${number}`, outcome: 'data' }),
      isBusy: () => waiting.size > 0,
      kill,
      gone,
    }
  }
  const schemas = createSchemas({
    start,
    processes: 4,
    builds: 2,
    buildMs: 1000,
    idleMs: 1000,
    onFailure: (project, error) => failures.push(`${project}: ${error}`),
    now: () => clock,
    ...options,
  })
  /** The number of the process that answers. */
  const ask = async (project: string, hash = project, developer = `d ${project}`, query = 'fast') => {
    const asking = { projectId: project, developerId: developer, sessionId: '' }
    const tables = [{ name: hash, ours: false, keys: [], graphql_name: null, columns: [] }]
    const question = { target: {} as never, asking, query, operationName: null, variables: {} }
    const response = await schemas.run({ hash, tables, target: {} as never, asking }, question, 1000)
    return Number(response?.body)
  }
  const settled = () => new Promise((resolve) => setTimeout(resolve, 5))
  /** Ends all builds that run, and those that follow, until none is left. */
  const endAll = async () => {
    await settled()
    for (let at = 0; at < builds.length; at += 1) {
      builds[at]?.end()
      await settled()
    }
  }
  return { schemas, ask, builds, failures, alive, settled, endAll, pass: (ms: number) => (clock += ms) }
}
const answered = async (setup: ReturnType<typeof setUp>, ...asked: Promise<number>[]) => {
  await setup.endAll()
  return Promise.all(asked)
}

test('databases of one shape share a schema, which is made once, by one process', async () => {
  const setup = setUp()
  const { ask, builds } = setup
  expect(await answered(setup, ask('a', 'same'), ask('b', 'same'), ask('c', 'same'))).toEqual([1, 1, 1])
  expect(await ask('d', 'same')).toBe(1)
  expect(builds).toHaveLength(1)
})

test('the next schema of a project is made by its own process, and by another where others use that one', async () => {
  const setup = setUp()
  const { ask } = setup
  expect(await answered(setup, ask('a', 'first'))).toEqual([1])
  expect(await answered(setup, ask('a', 'second'))).toEqual([1])
  expect(await answered(setup, ask('b', 'second'), ask('a', 'third'))).toEqual([1, 2])
  expect(await ask('b', 'second')).toBe(1)
})

test('two schemas are made at once, and one of a developer; whose turn was longest ago is next', async () => {
  const setup = setUp({ processes: 20 })
  const { ask, builds, settled } = setup
  const greedy = Array.from({ length: 6 }, (_, n) => ask(`greedy ${n}`, undefined, 'greedy'))
  const other = ask('other')
  await settled()
  expect(builds.map(({ project }) => project)).toEqual(['greedy 0', 'other'])
  builds[1]?.end()
  await settled()
  // nobody else waits, and yet the greedy one has no second build
  expect(builds).toHaveLength(2)
  const late = ask('late')
  await settled()
  expect(builds.map(({ project }) => project).slice(2)).toEqual(['late'])
  await answered(setup, other, late, ...greedy)
  expect(builds).toHaveLength(8)
})

test('a project that changes its collections in a loop waits for itself alone', async () => {
  const setup = setUp()
  const { ask, builds, settled } = setup
  const looping = ['1', '2', '3', '4'].map((hash) => ask('looping', hash))
  await settled()
  expect(builds.map(({ hash }) => hash)).toEqual(['1'])
  for (const project of ['x', 'y']) {
    const asked = ask(project)
    await settled()
    expect(builds.at(-1)?.project).toBe(project)
    builds.at(-1)?.end()
    await asked
  }
  await answered(setup, ...looping)
})

test('of the processes half is a developer’s share, and the one that was not used for longest makes room', async () => {
  const setup = setUp()
  const { ask, pass, schemas, alive, settled } = setup
  for (const project of ['a', 'b', 'c']) {
    pass(1)
    await answered(setup, ask(project, project, 'one'))
  }
  // the third has taken the place of the first
  expect(schemas.pids).toEqual([2, 3])
  for (const project of ['x', 'y']) {
    pass(1)
    await answered(setup, ask(project))
  }
  pass(1)
  await ask('b', 'b', 'one')
  pass(1)
  await answered(setup, ask('z'))
  expect(schemas.pids).toEqual([2, 4, 5, 6])
  // where all are at work it waits
  const slow = [
    ask('b', 'b', 'one', 'slow'),
    ask('x', 'x', 'd x', 'slow'),
    ask('y', 'y', 'd y', 'slow'),
    ask('z', 'z', 'd z', 'slow'),
  ]
  await settled()
  const waits = ask('late')
  await settled()
  expect(schemas.pids).toEqual([2, 4, 5, 6])
  for (const run of alive.get(5)?.runs ?? []) run()
  await answered(setup, waits)
  expect(schemas.pids).toEqual([2, 4, 6, 7])
  for (const { runs } of alive.values()) for (const run of runs) run()
  await Promise.all(slow)
})

test('a schema that fails is not begun anew before its time, which doubles, and fails for nobody else', async () => {
  const setup = setUp()
  const { ask, builds, failures, settled, pass } = setup
  const failing = async (end: () => void) => {
    const asked = ask('bad').catch((error) => error)
    await settled()
    end()
    const error = await asked
    expect(error).toBeInstanceOf(NotMade)
    return error.retryAfterMs
  }
  expect(await failing(() => builds.at(-1)?.end('no such type'))).toBe(30_000)
  expect(await failing(() => undefined)).toBe(30_000)
  expect(builds).toHaveLength(1)
  expect(await answered(setup, ask('good'))).toEqual([2])
  pass(30_001)
  // it takes too long, or too much memory: its process is ended
  expect(await failing(() => setup.alive.get(builds.at(-1)?.process ?? 0)?.kill())).toBe(60_000)
  expect(failures).toEqual(['bad: no such type', 'bad: its making took too long, or too much memory'])
  // another shape of the same project is begun at once
  expect(await answered(setup, ask('bad', 'changed'))).toEqual([4])
  pass(60_001)
  expect(await answered(setup, ask('bad'))).toEqual([4])
})

test('a database that is not there, and processes that the server ends, are remembered by nobody', async () => {
  const setup = setUp()
  const { ask, builds, schemas, settled } = setup
  const first = ask('a').catch((error) => error)
  await settled()
  builds[0]?.end('away', true)
  expect(await first).toBeInstanceOf(NotThere)
  const second = ask('a').catch((error) => error)
  await settled()
  schemas.reset()
  expect(await second).toBeInstanceOf(ProcessEnded)
  expect(await answered(setup, ask('a'))).toEqual([3])
  await schemas.close()
  expect(schemas.pids).toEqual([])
})
