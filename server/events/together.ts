import { availableParallelism } from 'node:os'
import { type Database, dataOf, type Reply } from '#server/database/database.ts'
import { mayBeCommitted } from '#server/database/failures.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { uuidPattern } from '#server/http/schemas.ts'

/** An event that waits until a place is free. */
type Waiting = {
  readonly userId: string
  readonly context: HandlerContext
  /** Records it by itself. */
  readonly alone: () => Promise<Reply>
  readonly resolve: (reply: Reply | Promise<Reply>) => void
}

/** Of one project, and one kind of credential: how many calls run, and what arrived meanwhile. */
type Queue = { running: number; readonly waiting: Waiting[]; readonly forget: () => void }

/**
 * While so many calls of a project run, what arrives waits: where a core is free, an event by itself is answered sooner. A project has few connections, and
 * other callers need some.
 */
const atOnce = Math.min(4, Math.max(1, Math.floor(availableParallelism() / 2)))
/** A call that takes longer waits for something, and nobody waits for that call. */
const patienceMs = 20
const mostTogether = 16

const queues = new WeakMap<Database, Map<string, Queue>>()

const queueOf = ({ database }: HandlerContext['services'], key: string): Queue => {
  const known = queues.get(database) ?? new Map<string, Queue>()
  queues.set(database, known)
  const queue = known.get(key) ?? { running: 0, waiting: [], forget: () => known.delete(key) }
  known.set(key, queue)
  return queue
}

/** Takes what goes together: at most one event of each user, whose effects are that user's answer. */
const taken = (queue: Queue): Waiting[] => {
  const users = new Set<string>()
  const group: Waiting[] = []
  for (let at = 0; at < queue.waiting.length && group.length < mostTogether; ) {
    const one = queue.waiting[at] as Waiting
    if (users.has(one.userId)) at += 1
    else {
      users.add(one.userId)
      group.push(one)
      queue.waiting.splice(at, 1)
    }
  }
  return group
}

/** The answers by place in the group; none where the database refused it as a whole, and so for whatever is not an event that counts. */
const recorded = async (group: readonly Waiting[]): Promise<ReadonlyMap<number, Reply>> => {
  const { services, resolved, accounted } = (group[0] as Waiting).context
  const args = {
    users: `{${group.map(({ userId }) => userId).join(',')}}`,
    bodies: `[${group.map(({ context }) => context.text || '{}').join(',')}]`,
  }
  const { caller = '', projectId = null } = resolved.claims
  try {
    const reply = await accounted((settings) =>
      services.database.call(
        resolved.place,
        'app_server',
        { caller, projectId },
        'events_post_together',
        args,
        settings,
      ),
    )
    const answers = dataOf<readonly { index: number; answer: string }[]>(reply)
    return new Map(answers.map(({ index, answer }) => [index, { ...reply, status: 201, body: `{"data":${answer}}` }]))
  } catch (error) {
    // recorded again it might count twice
    if (mayBeCommitted(error)) throw error
    return new Map()
  }
}

/** Counts as a running call until it is done or has taken too long. */
const run = async (queue: Queue, calls: () => Promise<void>): Promise<void> => {
  queue.running += 1
  let isCounted = true
  const free = () => {
    if (!isCounted) return
    isCounted = false
    queue.running -= 1
    next(queue)
    if (queue.running === 0) queue.forget()
  }
  const patience = setTimeout(free, patienceMs)
  await calls()
  clearTimeout(patience)
  free()
}

const next = (queue: Queue): void => {
  if (queue.running >= atOnce || queue.waiting.length === 0) return
  const group = taken(queue)
  void run(queue, async () => {
    try {
      const answers = group.length === 1 ? new Map<number, Reply>() : await recorded(group)
      const replies = group.map(({ alone, resolve }, index) => {
        const reply = answers.get(index) ?? alone()
        resolve(reply)
        return reply
      })
      await Promise.allSettled(replies)
    } catch (error) {
      for (const { resolve } of group) resolve(Promise.reject(error))
    }
  })
}

const callers = new Set(['user', 'server_key', 'server_key_user'])

/** Whose event it is: a server says so in the body. The database looks again. */
const userOf = ({ resolved, text = '' }: HandlerContext): string | null => {
  const { caller, userId = null } = resolved.claims
  if (caller === 'user' || !text.includes('app_user_id')) return userId
  const { app_user_id: named } = JSON.parse(text) as { readonly app_user_id?: unknown }
  return typeof named === 'string' && uuidPattern.test(named) ? named.toLowerCase() : null
}

/**
 * Records a single event. While other events of the project are recorded, what arrives waits, and is recorded in one call: one event of each user, each
 * with its own answer. What is refused, known, or would wait for somebody's lock is recorded alone, and answered as if nobody else had been there.
 */
export const together = (context: HandlerContext, alone: () => Promise<Reply>): Promise<Reply> => {
  const { caller = '' } = context.resolved.claims
  const projectId = context.resolved.project?.projectId
  const userId = projectId && callers.has(caller) ? userOf(context) : null
  if (!userId) return alone()
  const queue = queueOf(context.services, `${projectId} ${caller}`)
  return new Promise((resolve) => {
    queue.waiting.push({ userId, context, alone, resolve })
    next(queue)
  })
}
