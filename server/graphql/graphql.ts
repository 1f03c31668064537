import { totalmem } from 'node:os'
import type { Target } from '#server/database/cluster.ts'
import { onMoved } from '#server/database/hosts.ts'
import { refusal } from '#server/errors.ts'
import { createConnections, TooLate, Unreachable } from '#server/graphql/connections.ts'
import { type Asking, ofCatalog, type Response, type Run } from '#server/graphql/messages.ts'
import { type Log, ProcessEnded, startSchemaProcess } from '#server/graphql/schema_process.ts'
import { createSchemas, NotMade, NotThere } from '#server/graphql/schemas.ts'
import { mostParts, type Shape, shapeOf } from '#server/graphql/shape.ts'

export type Question = Pick<Run, 'target' | 'asking' | 'query' | 'operationName' | 'variables'> & {
  /** Called before the names of a new schema are made, where a name is not kept yet. */
  readonly keepNames?: () => Promise<void>
}

export type GraphQL = {
  /** The response to a query. Refuses 429 RATE_LIMITED and 503 GRAPHQL_UNAVAILABLE, TENANT_UNAVAILABLE. */
  ask(question: Question): Promise<Response>
  /** A change of a collection (`collection:<project>/<name>`) or of a database (`tenant:<project>`): its schema is looked at again. */
  drop(changed: string): void
  /** The processes that make schemas and answer with them. */
  readonly processIds: readonly number[]
  close(): Promise<void>
}

declare module '#server/services.ts' {
  interface Services {
    readonly graphql: GraphQL
  }
}

export type GraphQLOptions = {
  readonly log: Log
  /** Longest time from question to answer, the making of a schema included. */
  readonly timeoutMs?: number
  /** The longest making of a schema. */
  readonly buildMs?: number
  /** After so long without a question a process ends, and its memory with it. */
  readonly idleMs?: number
  /** Megabytes of the heap of a process. */
  readonly memory?: number
  readonly processes?: number
  /** The program of the processes; tests pass others. */
  readonly program?: string
}

export type { Asking, Target }

/** Questions that may be under way: of one project, of one developer, of all; and of all when the developer has none yet. */
const most = { project: 4, developer: 6, total: 12, newcomers: 24 } as const
/** How long a shape is taken for granted: what somebody changes by hand shows after this time. */
const shapeMs = 30_000
const rememberedShapes = 1000

const retryAfter = { 'Retry-After': '2' }
const unavailable = (why: string, seconds = 2) =>
  refusal(503, 'GRAPHQL_UNAVAILABLE', `GraphQL is not available: ${why}.`, null, { 'Retry-After': String(seconds) })
const notThere = () =>
  refusal(503, 'TENANT_UNAVAILABLE', 'The database of this project is not available.', null, retryAfter)

/** A process for each two gigabytes of memory, of the machine or of the control group: each takes up to 300 MB. */
const processesFor = (machine = totalmem(), group = process.constrainedMemory()): number =>
  Math.max(2, Math.min(6, Math.floor(Math.min(machine, group > 0 ? group : machine) / 2_000_000_000)))

const tooLarge: Response = {
  body: JSON.stringify({
    errors: [
      {
        message: `The collections of this project have more than ${mostParts} parts, each column being one and each reference four: no schema is made of so many.`,
        extensions: { code: 'QUERY_TOO_LARGE' },
      },
    ],
  }),
  outcome: 'refused',
}

const counted = () => {
  const counts = new Map<string, number>()
  return {
    of: (key: string) => counts.get(key) ?? 0,
    add(key: string, change: 1 | -1) {
      const count = (counts.get(key) ?? 0) + change
      if (count > 0) counts.set(key, count)
      else counts.delete(key)
    },
  }
}

/**
 * GraphQL, answered by processes of its own: making a schema takes a second of computing and tens of megabytes, and a query is planned in JavaScript. In
 * this process either would hold up every request. It only looks at what a schema would be made of.
 */
export const createGraphQL = (options: GraphQLOptions): GraphQL => {
  const { log, timeoutMs = 60_000, buildMs = 60_000, idleMs = 300_000, memory = 512, program } = options
  const connections = createConnections(1)
  const schemas = createSchemas({
    start: () => startSchemaProcess({ log, memory, program }),
    processes: options.processes ?? processesFor(),
    builds: 2,
    buildMs,
    idleMs,
    onFailure: (project, error) => log.error({ project, error }, 'the GraphQL schema of a project could not be made'),
  })
  const shapes = new Map<string, { readonly shape: Promise<Shape>; readonly until: number }>()
  const underWay = { project: counted(), developer: counted(), total: 0 }
  let isClosed = false

  // questions may wait for a machine that is gone; the next ones start other processes
  const unfollow = onMoved(() => schemas.reset())

  const look = async (question: Question): Promise<Shape> => {
    const read = () => shapeOf(connections.request(question.target, question.asking, ofCatalog))
    const shape = await read()
    if (!question.keepNames || !shape.tables.some(({ is_unnamed }) => is_unnamed)) return shape
    await question.keepNames()
    return read()
  }
  const shapeFor = (question: Question): Promise<Shape> => {
    const { projectId } = question.asking
    const known = shapes.get(projectId)
    if (known && known.until > performance.now()) return known.shape
    const shape = look(question)
    const entry = { shape, until: performance.now() + shapeMs }
    shapes.delete(projectId)
    shapes.set(projectId, entry)
    shape.catch(() => {
      if (shapes.get(projectId) === entry) shapes.delete(projectId)
    })
    for (const oldest of shapes.keys()) {
      if (shapes.size <= rememberedShapes) break
      shapes.delete(oldest)
    }
    return shape
  }

  const answer = async (question: Question, deadline: number): Promise<Response> => {
    const { target, asking, query, operationName, variables } = question
    const shape = await shapeFor(question)
    if (shape.hash === null) return tooLarge
    const run = { target, asking, query, operationName, variables }
    const isWanted = () => performance.now() < deadline
    const response = await schemas.run(
      { hash: shape.hash, tables: shape.tables, target, asking },
      run,
      timeoutMs,
      isWanted,
    )
    if (response === null) throw notThere()
    return response
  }

  const refuse = (error: unknown): never => {
    if (error instanceof NotThere) throw notThere()
    if (error instanceof NotMade)
      throw unavailable('the schema of this project could not be made', Math.ceil(error.retryAfterMs / 1000))
    if (error instanceof ProcessEnded) throw unavailable(isClosed ? 'the server is stopping' : error.message)
    if (error instanceof TooLate || error instanceof Unreachable) throw notThere()
    throw error
  }

  /** The making of a schema goes on for those who ask later. */
  const inTime = <T>(work: Promise<T>): Promise<T> => {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const timer = setTimeout(() => reject(unavailable('the schema of this project is not made yet')), timeoutMs)
    work.then(resolve, reject).finally(() => clearTimeout(timer))
    return promise
  }

  const admit = ({ projectId, developerId }: Asking) => {
    const ofDeveloper = underWay.developer.of(developerId)
    const isFull =
      underWay.project.of(projectId) >= most.project ||
      ofDeveloper >= most.developer ||
      underWay.total >= (ofDeveloper === 0 ? most.newcomers : most.total)
    if (isFull) throw refusal(429, 'RATE_LIMITED', 'Too many queries are under way at once.', null, retryAfter)
  }
  const count = ({ projectId, developerId }: Asking, change: 1 | -1) => {
    underWay.project.add(projectId, change)
    underWay.developer.add(developerId, change)
    underWay.total += change
  }

  return {
    get processIds() {
      return schemas.pids
    },
    async ask(question) {
      if (isClosed) throw unavailable('the server is stopping')
      admit(question.asking)
      count(question.asking, 1)
      try {
        return await inTime(answer(question, performance.now() + timeoutMs).catch(refuse))
      } finally {
        count(question.asking, -1)
      }
    },
    drop(changed) {
      const [kind, rest = ''] = changed.split(':')
      if (kind === 'collection' || kind === 'tenant') shapes.delete(rest.split('/')[0] ?? '')
    },
    async close() {
      unfollow()
      isClosed = true
      await Promise.all([schemas.close(), connections.close()])
    },
  }
}
