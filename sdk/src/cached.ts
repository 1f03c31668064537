import type { App } from './app.ts'
import { isTemporary } from './errors.ts'
import { getConfig, getFlags, listContent } from './generated/client.ts'
import type { ContentPage, FlagDetail } from './generated/schemas.ts'
import type { Operation } from './operation.ts'

type Kept<Data> = {
  readonly user: string | null
  readonly etag: string | null
  readonly until: number
  readonly data: Data
}

/**
 * What the server answers with an ETag, kept in the store: without network the last answer is used, and what has not changed is not sent again.
 * The answer of one user is never shown to another.
 */
const createCached = <Data extends object>(
  app: App,
  name: string,
  operation: Operation<object, { data: Data }>,
  query: Readonly<Record<string, unknown>> = {},
) => {
  const { transport, sessions, store, prefix, send } = app.inside
  const place = `${prefix}:${name}`
  let kept: Kept<Data> | undefined
  let loading: Promise<Data> | undefined

  const readKept = async (user: string | null): Promise<Kept<Data> | undefined> => {
    if (kept?.user === user) return kept
    try {
      const stored = JSON.parse((await store.getItem(place)) || 'null') as Kept<Data> | null
      return stored?.user === user ? stored : undefined
    } catch {
      return undefined
    }
  }

  const fetchNow = async (before: Kept<Data> | undefined, user: string | null): Promise<Data> => {
    const headers: Record<string, string> = before?.etag ? { 'if-none-match': before.etag } : {}
    const reply = await send(operation, { query, headers })
    const [, seconds = '0'] = /max-age=(\d+)/.exec(reply.headers.get('cache-control') ?? '') ?? []
    const data = reply.status === 304 && before ? before.data : reply.body.data
    const etag = reply.headers.get('etag') ?? (reply.status === 304 ? (before?.etag ?? null) : null)
    kept = { user, etag, until: transport.now() + Number(seconds) * 1000, data }
    await store.setItem(place, JSON.stringify(kept))
    return data
  }

  const loadNow = async (isForced: boolean): Promise<Data> => {
    const user = (await sessions.current())?.userId ?? null
    const before = await readKept(user)
    const left = before ? before.until - transport.now() : 0
    // a clock that was set back does not keep an answer for ever
    if (before && !isForced && left > 0 && left <= 3_600_000) {
      kept = before
      return before.data
    }
    try {
      return await fetchNow(before, user)
    } catch (error) {
      if (!before || !isTemporary(error)) throw error
      kept = before
      return before.data
    }
  }

  return {
    load({ force = false }: { force?: boolean } = {}): Promise<Data> {
      loading ??= loadNow(force).finally(() => {
        loading = undefined
      })
      return loading
    },
    now: () => kept?.data,
  }
}

export type Config = {
  /** The values for the user. From the cache while it is fresh, or the server cannot be reached. */
  load(options?: { force?: boolean }): Promise<Readonly<Record<string, unknown>>>
  /** A value of the last load, of the type of `otherwise`, which stands for a key that is missing or of another type. */
  get<T>(key: string, otherwise: T): T
}

const isLike = <T>(value: unknown, example: T): value is T =>
  example === null || example === undefined
    ? value !== undefined
    : typeof value === typeof example && Array.isArray(value) === Array.isArray(example) && value !== null

export const createConfig = (app: App): Config => {
  const cached = createCached<Record<string, unknown>>(app, 'config', getConfig)
  return {
    load: cached.load,
    get(key, otherwise) {
      const value = cached.now()?.[key]
      return isLike(value, otherwise) ? value : otherwise
    },
  }
}

export type Flags = {
  load(options?: { force?: boolean }): Promise<Readonly<Record<string, FlagDetail>>>
  get<T>(key: string, otherwise: T): T
}

export const createFlags = (app: App): Flags => {
  const cached = createCached<Record<string, FlagDetail>>(app, 'flags', getFlags)
  return {
    load: cached.load,
    get(key, otherwise) {
      const value: unknown = cached.now()?.[key]?.value
      return isLike(value, otherwise) ? value : otherwise
    },
  }
}

export type ContentOptions = {
  /** The language; without it the server goes by `Accept-Language`, and by the property `locale` of the user. */
  readonly locale?: string | undefined
  readonly contentType?: string | undefined
  readonly tag?: string | undefined
}
export type ContentEntry = ContentPage['data'][number]

export type Content = {
  /** The first 200 entries of the type and the tag, in the language. From the cache while it is fresh, or the server cannot be reached. */
  load(options?: { force?: boolean }): Promise<readonly ContentEntry[]>
  /** An entry of the last load. */
  get(key: string): ContentEntry | undefined
}

/** Entries in one language, kept in the store: each language that was loaded is there without a network. */
export const createContent = (app: App, { locale, contentType, tag }: ContentOptions = {}): Content => {
  const name = ['content', locale, contentType, tag].map((part) => encodeURIComponent(part ?? '')).join(':')
  const query = { locale, content_type: contentType, tag, limit: 200 }
  const cached = createCached<readonly ContentEntry[]>(app, name, listContent, query)
  return { load: cached.load, get: (key) => cached.now()?.find((entry) => entry.key === key) }
}
