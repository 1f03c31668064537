import pg from 'pg'
import type { Logger } from 'pino'
import { StartError } from '#server/errors.ts'

// Postgres on several hosts, of which one at a time takes writes. URL knows one host, so the others stand in its parameter `hosts`; which of them is the
// primary is found out by asking, as libpq does it for target_session_attrs, and noted here for everything that connects.

export type Host = { readonly host: string; readonly port: number }

const listParameter = 'hosts'
const wish = 'target_session_attrs'
const authority = /^(postgres(?:ql)?:\/\/)([^@/?]*@)?([^/?]*)(.*)$/s
const wrongHosts = (what: string) =>
  new StartError(
    `${what}: each of several hosts is host:port, with commas between: postgres://user:password@a:5432,b:5432/postgres`,
  )

/**
 * The address as the rest of the program reads it. `postgres://user:password@a:5432,b:5432/postgres?target_session_attrs=read-write`, as libpq reads it, becomes
 * one of the first host with a parameter that has all of them. Throws a StartError that names the variable `what`.
 */
export const withHosts = (text: string, what: string): string => {
  const [, scheme, login = '', hosts = '', rest = ''] = authority.exec(text) ?? []
  if (!scheme) return text
  if (!hosts.includes(',')) {
    const given = URL.canParse(text) ? new URL(text).searchParams : new URLSearchParams()
    // libpq takes lists there too
    if (['host', 'port'].some((name) => given.get(name)?.includes(','))) throw wrongHosts(what)
    // what this function has made
    if (
      given
        .get(listParameter)
        ?.split(',')
        .some((host) => hostOf(host) === null)
    )
      throw wrongHosts(what)
    return text
  }
  const list = hosts.split(',')
  const [first = ''] = list
  if (!URL.canParse(scheme + login + first + rest) || list.some((host) => hostOf(host) === null)) throw wrongHosts(what)
  const url = new URL(scheme + login + first + rest)
  const wanted = url.searchParams.get(wish) ?? 'read-write'
  if (!['read-write', 'primary', 'any'].includes(wanted))
    throw new StartError(`${what}: Trellis writes, so ${wish} must be read-write or primary, and not ${wanted}.`)
  if (list.length > 8) throw new StartError(`${what}: at most 8 hosts.`)
  url.searchParams.set(listParameter, list.join(','))
  return url.href
}

const hostOf = (text: string): Host | null => {
  const [, bracketed, plain, port = '5432'] = /^(?:\[([0-9a-f:]+)\]|([^:@[\]\s]+))(?::(\d{1,5}))?$/i.exec(text) ?? []
  const host = bracketed ?? plain
  return host === undefined || Number(port) < 1 || Number(port) > 65535 ? null : { host, port: Number(port) }
}

/** The hosts of an address that `withHosts` has read; empty where it has one alone. */
export const hostsOf = (dsn: string): readonly Host[] => {
  const list = new URL(dsn).searchParams.get(listParameter)
  return list === null ? [] : list.split(',').map((text) => hostOf(text) as Host)
}

/** The address as libpq reads it, for `psql` and the like. */
export const libpqUrl = (url: URL): string => {
  const list = url.searchParams.get(listParameter)
  if (list === null) return url.href
  const one = new URL(url)
  one.searchParams.delete(listParameter)
  if (!one.searchParams.has(wish)) one.searchParams.set(wish, 'read-write')
  return one.href.replace(`${one.host}/`, `${list}/`)
}

/** `seen` is what the primary last was; until it was seen, the first host is no more than a guess. */
type Place = { current: Host; seen: Standing | null; readonly hosts: readonly Host[]; readonly dsn: string }

/** By the list of hosts: servers are the same whoever logs in. */
const places = new Map<string, Place>()
const listeners = new Set<(from: Host, to: Host) => void>()

const placeOf = (dsn: string): Place | null => {
  const list = new URL(dsn).searchParams.get(listParameter)
  if (list === null) return null
  const known = places.get(list)
  if (known) return known
  const hosts = hostsOf(dsn)
  const place = { current: hosts[0] as Host, seen: null, hosts, dsn }
  places.set(list, place)
  return place
}

/** Where the primary was last seen; null for an address of one host. */
export const currentHost = (dsn: string): Host | null => placeOf(dsn)?.current ?? null

/** Is told when the primary is another one. Answers how to hear no more. */
export const onMoved = (listener: (from: Host, to: Host) => void): (() => void) => {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

const isSame = (a: Host, b: Host) => a.host === b.host && a.port === b.port

const move = (place: Place, to: Host) => {
  const from = place.current
  if (isSame(from, to)) return
  place.current = to
  for (const listener of listeners) listener(from, to)
}

export const patienceMs = 2_000

/** TLS of a connection, as its address wants it. */
export const tlsOf = (url: URL): { rejectUnauthorized: boolean } | undefined => {
  const mode = url.searchParams.get('sslmode')
  return mode && !['disable', 'prefer', 'allow'].includes(mode) ? { rejectUnauthorized: mode !== 'require' } : undefined
}

/** The host of an address; of several, the one where the primary was last seen. */
export const hostOfAddress = (dsn: string): Host => {
  const url = new URL(dsn)
  return (
    placeOf(dsn)?.current ?? {
      host: decodeURIComponent(url.searchParams.get('host') ?? url.hostname),
      port: Number(url.port || 5432),
    }
  )
}

/** A connection as the administrator to one of the hosts. */
export const clientAt = (dsn: string, { host, port }: Host): pg.Client => {
  const url = new URL(dsn)
  const ssl = tlsOf(url)
  const client = new pg.Client({
    host,
    port,
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: url.pathname.slice(1) || 'postgres',
    application_name: 'trellis_hosts',
    connectionTimeoutMillis: patienceMs,
    query_timeout: patienceMs,
    keepAlive: true,
    ...(ssl === undefined ? {} : { ssl }),
  })
  client.on('error', () => undefined)
  return client
}

/** What takes writes: which database cluster it is (standbys have the identifier of their primary), and on which timeline, of which each promotion begins a new one. */
type Standing = { readonly system: string; readonly timeline: number }
type Answer = Standing & { readonly client: pg.Client; readonly host: Host }

/** Null where this server takes no writes now. */
const standingOf = async (client: pg.Client): Promise<Standing | null> => {
  const { rows } = await client.query<{ system: string; timeline: string | null }>(
    `select (select system_identifier::text from pg_control_system()) as system,
            case when not pg_is_in_recovery() and current_setting('default_transaction_read_only') = 'off'
                 then left(pg_walfile_name(pg_current_wal_lsn()), 8) end as timeline`,
  )
  const [{ system, timeline } = { system: '', timeline: null }] = rows
  return timeline === null ? null : { system, timeline: Number.parseInt(timeline, 16) }
}

const askHost = async (place: Place, host: Host): Promise<Answer | null> => {
  const client = clientAt(place.dsn, host)
  try {
    await client.connect()
    const standing = await standingOf(client)
    if (standing) return { client, host, ...standing }
  } catch {
    // not this one
  }
  destroy(client)
  return null
}

type Search = { readonly found: Answer | null; readonly former: readonly Host[] }

/**
 * All are asked at once, so that those which never answer cost the time of one. Of several that take writes the one on the latest timeline is the primary, and one on
 * an earlier timeline than this process has seen is none: it was replaced while it was away, and does not know it.
 */
const search = async (place: Place, asked: Answer | null = null): Promise<Search> => {
  const ask = (host: Host) => (asked && isSame(host, asked.host) ? asked : askHost(place, host))
  const answers = (await Promise.all(place.hosts.map(ask))).filter((one) => one !== null)
  // another cluster altogether, after an upgrade or a restore, begins anew
  const isKnown = ({ system }: Standing) => system === place.seen?.system
  const own = answers.some(isKnown) ? answers.filter(isKnown) : answers
  const atCurrent = own.find(({ host }) => isSame(host, place.current))
  const { system } = atCurrent ?? own[0] ?? { system: '' }
  const latest = Math.max(
    system === place.seen?.system ? place.seen.timeline : 0,
    ...own.filter((one) => one.system === system).map(({ timeline }) => timeline),
  )
  const isLatest = (one: Answer) => one.system === system && one.timeline === latest
  const found = atCurrent && isLatest(atCurrent) ? atCurrent : (own.find(isLatest) ?? null)
  const others = answers.filter((one) => one !== found)
  for (const { client } of others) if (client !== asked?.client) destroy(client)
  if (found) {
    place.seen = { system, timeline: latest }
    move(place, found.host)
  }
  return { found, former: others.map(({ host }) => host) }
}

/** Finds the primary of an address with several hosts. Throws a StartError when none of them takes writes. */
export const locate = async (dsn: string): Promise<void> => {
  const place = placeOf(dsn)
  if (!place) return
  const { found } = await search(place)
  if (!found)
    throw new StartError(
      `None of ${place.hosts.map(({ host, port }) => `${host}:${port}`).join(', ')} is a Postgres that takes writes and this login.`,
    )
  await found.client.end()
}

/** As `locate`, for an address whose primary this process has not seen yet. */
export const locateOnce = async (dsn: string): Promise<void> => {
  if (placeOf(dsn)?.seen === null) await locate(dsn)
}

/** How often a primary is asked whether it still is one; while there is none, how often it is looked for; and how often the other hosts are asked. */
const askMs = 1_000
const searchMs = 250
const othersMs = 5_000

type Sentinel = { readonly client: pg.Client; readonly host: Host; othersAt: number }

/** Follows the primaries of all addresses with several hosts that this process connects to: a connection to each, which ends with it. */
export const followHosts = (log: Pick<Logger, 'warn' | 'info'>): { close(): Promise<void> } => {
  const sentinels = new Map<Place, Sentinel | null>()
  const refused = new Map<Place, string>()
  let isClosed = false
  let wake: () => void = () => undefined

  const lose = (place: Place, sentinel: Sentinel) => {
    if (isClosed || sentinels.get(place) !== sentinel) return
    sentinels.set(place, null)
    destroy(sentinel.client)
    log.warn(sentinel.host, 'the primary is gone, or is one no more: looking for another')
    wake()
  }
  const warnOf = (place: Place, former: readonly Host[]) => {
    const list = former.map(({ host, port }) => `${host}:${port}`).join(', ')
    if (list !== '' && list !== refused.get(place))
      log.warn({ hosts: list }, 'takes writes, but another was promoted since, so it is not used: stop it')
    refused.set(place, list)
  }
  const look = async (place: Place) => {
    const sentinel = sentinels.get(place)
    let asked: Answer | null = null
    if (sentinel) {
      const standing = await standingOf(sentinel.client).catch(() => null)
      if (!standing) lose(place, sentinel)
      // another may have been promoted while this one goes on
      else if (performance.now() - sentinel.othersAt < othersMs) return
      else asked = { client: sentinel.client, host: sentinel.host, ...standing }
    }
    const { found, former } = await search(place, asked)
    warnOf(place, former)
    if (!found) return
    if (isClosed) return destroy(found.client)
    if (sentinel && found === asked) {
      sentinel.othersAt = performance.now()
      return
    }
    if (sentinels.has(place)) log.info(found.host, 'this is the primary')
    const next = { client: found.client, host: found.host, othersAt: performance.now() }
    sentinels.set(place, next)
    found.client.once('end', () => lose(place, next))
    if (sentinel) destroy(sentinel.client)
  }
  const rest = (milliseconds: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, milliseconds).unref()
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  const follow = async () => {
    while (!isClosed) {
      await Promise.all([...places.values()].map(look)).catch((error: Error) =>
        log.warn({ error: error.message }, 'cannot look for the primary'),
      )
      const isSearching = [...places.values()].some((place) => !sentinels.get(place))
      if (!isClosed) await rest(isSearching ? searchMs : askMs)
    }
  }
  const following = follow()
  return {
    async close() {
      isClosed = true
      wake()
      await following
      // not an orderly end: a machine that is gone never answers it
      for (const sentinel of sentinels.values()) if (sentinel) destroy(sentinel.client)
    },
  }
}

/** What waits for a server that is gone fails with the error of a broken connection. */
export const serverGone = () =>
  Object.assign(new Error('the connection was cut: its server is gone'), { code: 'ECONNRESET' })

/**
 * Cuts a connection whose other side may never answer. What waits for it fails at once: with the error of a broken connection, because a stream that ends without
 * one leaves the promise of a connection that is being made unsettled.
 */
export const destroy = (client: pg.Client | pg.PoolClient): void => {
  const error = serverGone()
  ;(client as unknown as { connection: { stream: { destroy(error: Error): void } } }).connection.stream.destroy(error)
}

/** Cuts this connection when the primary is elsewhere. */
export const cutWhenMoved = (client: pg.Client): void => {
  const unfollow = onMoved((from) => {
    if (isSame(from, client)) destroy(client)
  })
  client.once('end', unfollow)
}
