// What every request or every event of a server passes through: the hub of realtime, and the loader of functions and policies.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { connectAdmin } from '#server/database/cluster.ts'
import { address, signIn, type User } from '../../../bench/support/installation.ts'
import { percentile } from '../../../bench/support/numbers.ts'
import { copyProgram } from '../../../bench/support/reload.ts'
import { say } from '../../../bench/support/results.ts'
import { databaseOf, type Part, type Tenant, until, type World, waitsBeside, within } from './part.ts'

type Frame = Record<string, unknown>
type Socket = {
  send(frame: Frame): void
  /** The first frame from now on that fits. */
  next(fits: (frame: Frame) => boolean): Promise<Frame>
  close(): void
}

const open = async ({ url }: World, user: User): Promise<Socket> => {
  const raw = new WebSocket(`${url.replace('http', 'ws')}/v1/client/realtime`, {
    headers: { ...address(), ...user.headers },
  })
  await once(raw, 'open')
  const waiting = new Set<(frame: Frame) => void>()
  raw.on('message', (data) => {
    if (waiting.size === 0) return
    const frame = JSON.parse(String(data)) as Frame
    for (const each of [...waiting]) each(frame)
  })
  raw.on('error', () => undefined)
  return {
    send: (frame) => raw.send(JSON.stringify(frame)),
    next: (fits) =>
      new Promise((resolve, reject) => {
        const late = setTimeout(() => reject(new Error('no frame came')), 20_000)
        const look = (frame: Frame) => {
          if (!fits(frame)) return
          clearTimeout(late)
          waiting.delete(look)
          resolve(frame)
        }
        waiting.add(look)
      }),
    close: () => raw.terminate(),
  }
}

let refs = 0
/** Subscribes, publishes and waits for the event: milliseconds until the acknowledgement, and until the event. */
const listenOnce = async (world: World, { user }: Tenant): Promise<{ ack: number; event: number }> => {
  const socket = await open(world, user)
  refs += 1
  const [ref, channel] = [`r${refs}`, `room:${crypto.randomUUID()}`]
  const began = performance.now()
  const acked = socket.next((frame) => frame['ref'] === ref)
  socket.send({ type: 'subscribe', ref, channel })
  const { type } = await acked
  if (type !== 'ack') throw new Error(`a subscription was answered ${type}`)
  const ack = performance.now() - began
  const published = performance.now()
  const received = socket.next((frame) => frame['type'] === 'event' && frame['channel'] === channel)
  socket.send({ type: 'publish', channel, event: 'e', payload: 1 })
  await received
  const event = performance.now() - published
  socket.close()
  return { ack, event }
}

/** A project whose users publish and subscribe as fast as they may, and in whose database a transaction stays open; and one in control. */
export const hub: Part = {
  name: 'hub',
  bound: '2 s',
  async run(world) {
    const [greedy, other] = [await world.tenant(), await world.tenant()]
    const many = world.isShort ? 10 : 20
    const ms = world.isShort ? 15_000 : 25_000
    const users: User[] = []
    for (let n = 0; n < many; n += 1) users.push(await signIn(world.url, greedy.key))
    const holders = []
    for (const one of [greedy.projectId, 'control']) {
      const holder = await connectAdmin(world.installation.cluster, databaseOf(one))
      await holder.query('begin; select pg_current_xact_id()')
      holders.push(holder)
    }
    const end = performance.now() + ms
    let [sent, asked] = [0, 0]
    const flood = async (user: User, index: number) => {
      const socket = await open(world, user)
      const channel = `room:${index % 4 === 0 ? 'one' : `of-${index}`}`
      socket.send({ type: 'subscribe', ref: 'flood', channel: 'room:one' })
      if (channel !== 'room:one') socket.send({ type: 'subscribe', ref: 'flood', channel })
      for (let n = 0; performance.now() < end; n += 1) {
        for (let each = 0; each < 2; each += 1, sent += 1)
          socket.send({ type: 'publish', channel: 'room:one', event: 'flood', payload: 'x'.repeat(1000) })
        for (const type of ['subscribe', 'unsubscribe']) {
          socket.send({ type, ref: `f${n}`, channel: `room:${index}-${n % 50}` })
          asked += 1
        }
        await sleep(110)
      }
      socket.close()
    }
    const seen: { ack: number; event: number }[] = []
    const waits = await waitsBeside(
      () =>
        listenOnce(world, other).then(
          (one) => {
            seen.push(one)
            return true
          },
          (error: Error) => {
            say(error.message)
            return false
          },
        ),
      () => Promise.all(users.map(flood)),
    )
    for (const holder of holders) await holder.end()
    const beside = `transactions stay open in a project and in control, and ${many} users of the project send ${sent} messages and subscribe or unsubscribe ${asked} times`
    const ofAll = (kind: 'ack' | 'event') =>
      percentile(
        seen.map((one) => one[kind]),
        1,
      )
    return {
      claims: [
        within(
          `${beside}: the last acknowledgement of ${seen.length} to another project`,
          ofAll('ack'),
          2_000,
          waits.refused,
        ),
        within('beside them the last event of another project', ofAll('event'), 2_000),
      ],
    }
  },
}

/** A reload while a table of one project is locked: the others are reloaded and served meanwhile. */
export const loader: Part = {
  name: 'loader',
  bound: '60 s to be reloaded, 3 s for a request',
  async run(world) {
    const [held, ...others] = [await world.tenant(), await world.tenant(), await world.tenant(), await world.tenant()]
    const copy = await copyProgram('one policy')
    const holder = await connectAdmin(world.installation.cluster, databaseOf(held.projectId))
    await holder.query('begin; lock table app.push_tokens in access exclusive mode')
    const hashOf = async ({ projectId }: Tenant) =>
      (
        await world.sql<{ content_hash: string }>(
          'control',
          'select content_hash from app.tenants where project_id = $1',
          [projectId],
        )
      )[0]?.content_hash
    const before = await hashOf(held)
    const child = spawn(process.execPath, [join(copy.folder, 'scripts/database.ts'), 'reload'], {
      cwd: copy.folder,
      env: {
        PATH: process.env['PATH'],
        DATA_DIR: world.installation.dataDir,
        SECRETS_KEY: world.installation.secretsKey,
      },
    })
    let said = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        said += chunk
      })
    const began = performance.now()
    const ended = once(child, 'exit')
    const came = new Map<string, number>()
    const look = async () => {
      for (const one of others)
        if (!came.has(one.projectId) && (await hashOf(one)) !== before)
          came.set(one.projectId, performance.now() - began)
      return came.size === others.length
    }
    const waits = await waitsBeside(
      async () => {
        const statuses = await Promise.all(
          others.map(({ user }) => world.call(user.headers, 'GET', '/v1/client/users/me').then(({ status }) => status)),
        )
        return statuses.every((status) => status === 200)
      },
      () => until(look, 180_000),
    )
    const longest = (await look()) ? Math.max(...came.values()) : Number.POSITIVE_INFINITY
    const isLeft = (await hashOf(held)) === before && child.exitCode === null
    await holder.end()
    const [code] = await ended
    const isBrought = code === 0 && (await hashOf(held)) !== before
    if (!isBrought) say(said)
    await copy.remove()
    return {
      claims: [
        within(
          `the table of a policy is locked in one project during a reload: the last of ${others.length} others to be reloaded, counted from the start of the command`,
          longest,
          60_000,
        ),
        within(
          `meanwhile the slowest of ${waits.answers} times that each of them is asked`,
          waits.longest,
          3_000,
          waits.refused,
        ),
        { text: 'the reload waits for that project, and brings it when the lock is gone', holds: isLeft && isBrought },
      ],
    }
  },
}
