import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { Place } from '#server/database/cluster.ts'
import { type Database, dataOf } from '#server/database/database.ts'
import type { Notifier } from '#server/database/notifier.ts'
import { refusal } from '#server/errors.ts'
import type { ProjectCache } from '#server/http/project_cache.ts'
import type { Tokens } from '#server/http/tokens.ts'
import { type Closings, createClosings } from '#server/realtime/closings.ts'
import { createHub } from '#server/realtime/hub.ts'
import { closing } from '#server/realtime/protocol.ts'
import type { Connection, Credential, Hub, Transport } from '#server/realtime/types.ts'

/** Realtime of one server process: a hub for each project that somebody listens to here. */
export type Realtime = {
  /** Names this process to the others. */
  readonly serverId: string
  /** Admits a connection; rejects with what refuses it. */
  open(credential: Credential, transport: Transport): Promise<Connection>
  /** A transaction of this process has published: its own hub reads at once, other processes are told soon. */
  published(projectId: string): void
  /** What another process tells, or the cache invalidation: `realtime:<project>:<server>`, and credentials that changed. */
  drop(changed: string): void
  /** After a reconnect, because notifications may have been lost: checks all credentials. */
  checkAll(): void
  listeners(projectId: string, channel: string): number
  /** Closes every connection; resolves when the database has been told. */
  stop(): Promise<void>
}

declare module '#server/services.ts' {
  interface Services {
    readonly realtime: Realtime
  }
}

export type RealtimeOptions = {
  readonly database: Database
  readonly control: Place
  readonly projectCache: () => ProjectCache
  readonly tokens: Tokens
  readonly notifier: () => Notifier
  readonly log: Logger
  readonly now: () => Date
}

/** Other processes are told at most this often: each NOTIFY takes a lock of the whole cluster. */
const announceMs = 20

const isSamePlace = (a: Place, b: Place) => a.database === b.database && a.cluster.id === b.cluster.id

export const createRealtime = (options: RealtimeOptions): Realtime => {
  const { database, log, now } = options
  const serverId = randomUUID()
  const hubs = new Map<string, Hub>()
  const allClosings = new Map<string, { readonly closings: Closings; readonly place: Place }>()
  const published = new Set<string>()
  let announcing: NodeJS.Timeout | undefined
  let isStopped = false

  const hubOf = (credential: Credential): Hub => {
    const { project, place } = credential.resolved
    if (!project) throw new Error('a connection belongs to a project')
    const known = hubs.get(project.projectId)
    if (known && isSamePlace(known.place, place)) return known
    // the project has moved to another server: those who listened before it connect again
    known?.closeAll(closing.restart, 'connect again')
    const { projectId } = project
    const closings = closingsOf(projectId, place)
    const hub: Hub = createHub({
      projectId,
      serverId,
      place,
      database,
      log,
      now,
      closings,
      isLive,
      renew,
      onEmpty() {
        if (hubs.get(projectId) === hub) hubs.delete(projectId)
        void closings.flushed().then(() => {
          if (!hubs.has(projectId) && allClosings.get(projectId)?.closings === closings) allClosings.delete(projectId)
        })
      },
    })
    hubs.set(projectId, hub)
    return hub
  }

  const closingsOf = (projectId: string, place: Place): Closings => {
    const known = allClosings.get(projectId)
    if (known && isSamePlace(known.place, place)) return known.closings
    const closings = createClosings(async (ids) => {
      const claims = { caller: 'worker', projectId }
      await database
        .call(place, 'app_worker', claims, 'realtime_close', { connection_ids: ids })
        .catch((error: Error) =>
          log.warn({ project: projectId, error: error.message }, 'connections of realtime that are closed still count'),
        )
    })
    allClosings.set(projectId, { closings, place })
    return closings
  }

  /** Whether the key, the project and the session of a connection still stand, as the database says now. */
  const isLive = async ({ resolved, sid, userId, keyHash }: Credential): Promise<boolean> => {
    const projectId = resolved.project?.projectId ?? ''
    const project = await options.projectCache().byProject(projectId)
    if (!project?.place || !isSamePlace(project.place, resolved.place)) return false
    if (keyHash !== null) {
      const args = { key_hash: keyHash }
      const key = await database.call(options.control, 'control_auth', { caller: 'edge' }, 'edge_key', args)
      if (dataOf<unknown>(key) === null) return false
    }
    const claims = { caller: 'edge', projectId }
    if (sid !== null)
      return dataOf<{ is_live: boolean }>(
        await database.call(resolved.place, 'app_auth', claims, 'auth_session', {
          sid,
          tests_since: project.developmentSince,
        }),
      ).is_live
    return dataOf<{ exists: boolean }>(
      await database.call(resolved.place, 'app_server', claims, 'user_exists', { user_id: userId }),
    ).exists
  }

  const renew = async (credential: Credential, token: string): Promise<Credential | null> => {
    const { project } = credential.resolved
    if (!project) return null
    const verified = await options.tokens.verifySession(project, token)
    if (verified.kind !== 'valid' || verified.claims.userId !== credential.userId) return null
    const { sid, expiresAt } = verified.claims
    const claims = { ...credential.resolved.claims, sessionId: sid }
    const renewed = { ...credential, resolved: { ...credential.resolved, claims }, sid, expiresAt }
    return (await isLive(renewed)) ? renewed : null
  }

  const announce = () => {
    announcing = undefined
    const changed = [...published].map((projectId) => `realtime:${projectId}:${serverId}`)
    published.clear()
    void options.notifier().publish(changed)
  }
  const check = (hub: Hub, which: (credential: Credential) => boolean) =>
    void hub
      .checkCredentials(which)
      .catch((error: Error) => log.warn({ error: error.message }, 'connections of realtime were not checked'))

  return {
    serverId,
    async open(credential, transport) {
      if (isStopped) throw refusal(503, 'SERVICE_UNAVAILABLE', 'The server is stopping.', null, { 'Retry-After': '2' })
      return hubOf(credential).open(credential, transport)
    },
    published(projectId) {
      hubs.get(projectId)?.wake()
      published.add(projectId)
      announcing ??= setTimeout(announce, announceMs).unref()
    },
    drop(changed) {
      const [kind, id = '', from] = changed.split(':')
      if (kind === 'realtime') {
        if (from !== serverId) hubs.get(id)?.wake()
        return
      }
      for (const hub of hubs.values()) {
        if (kind === 'session') check(hub, ({ sid }) => sid === id)
        if (kind === 'user') check(hub, ({ userId }) => userId === id)
        if (kind === 'key') check(hub, ({ keyHash }) => keyHash === id)
        if ((kind === 'project' || kind === 'tenant') && hub.projectId === id) check(hub, () => true)
      }
    },
    checkAll() {
      for (const hub of hubs.values()) check(hub, () => true)
    },
    listeners: (projectId, channel) => hubs.get(projectId)?.listeners(channel) ?? 0,
    async stop() {
      isStopped = true
      clearTimeout(announcing)
      for (const hub of [...hubs.values()]) hub.closeAll(closing.restart, 'the server stops')
      await Promise.all([...allClosings.values()].map(({ closings }) => closings.flushed()))
    },
  }
}

/** The same database, which tells of transactions that published: the server waits for no one because of them. */
export const announcePublished = (database: Database, published: (projectId: string) => void): Database => {
  const mark = /(^|,)realtime:([0-9a-f-]+)(?=,|$)/g
  const withoutMarks = (changed: string): string =>
    changed
      .replace(mark, (_, _before, projectId: string) => {
        published(projectId)
        return ''
      })
      .replace(/^,/, '')
  return {
    ...database,
    async call(...args) {
      const reply = await database.call(...args)
      if (!reply.changed.some((one) => one.startsWith('realtime:'))) return reply
      const changed = withoutMarks(reply.changed.join(','))
      return { ...reply, changed: changed === '' ? [] : changed.split(',') }
    },
    async execute(...args) {
      const answer = await database.execute(...args)
      const changed = answer.row[4]
      if (!changed?.includes('realtime:')) return answer
      return { ...answer, row: answer.row.with(4, withoutMarks(changed)) }
    },
  }
}
