import { createRowReader, type RowReader } from '#server/collections/row_encoder.ts'
import { bindValues, type Compiled, type CompiledJson, readCompiled, rowsFit } from '#server/collections/values.ts'
import type { Claims, Statement } from '#server/database/call.ts'
import type { Place, Role } from '#server/database/cluster.ts'
import {
  type CallSettings,
  type Database,
  isDeadlock,
  type Reply,
  replyOf,
  waitBeforeRetry,
} from '#server/database/database.ts'
import { type DatabaseError, failureOf } from '#server/database/failures.ts'
import { ApiError, refusal } from '#server/errors.ts'
import { createLru, type Lru } from '#server/lru.ts'

/** What is asked of a collection. Two questions of one shape are one statement with other values. */
export type Question = {
  readonly kind: string
  readonly collection: string
  readonly shape: string
  readonly request: Readonly<Record<string, unknown>>
}

/**
 * `next` is where the next page begins; `pages` whether the question is one of pages at all. `cut` is how many rows are shown of more, where
 * 8 MB had no room for all.
 */
export type Answered = Reply & {
  readonly next: RowReader['next']
  readonly pages: boolean
  readonly cut: number | null
}

export type Statements = {
  /** One round trip when the shape is known: only values travel. */
  ask(
    place: Place,
    role: Role,
    claims: Omit<Claims, 'role'>,
    question: Question,
    settings: CallSettings,
  ): Promise<Answered>
  /**
   * The version of the collection whose columns the rows of a question fit, by their kinds and patterns, as `ask` sees it before it sends them; null where
   * they do not, or where the question is refused.
   */
  check(
    place: Place,
    role: Role,
    claims: Omit<Claims, 'role'>,
    question: Question,
    settings: CallSettings,
  ): Promise<Pick<Reply, 'milliseconds' | 'dueAt' | 'changed'> & { readonly version: string | null }>
  /** What is kept now, of how many projects. */
  readonly state: { readonly bytes: number; readonly places: number; readonly entries: number }
  /** Forgets every statement when a project's database is another one (`tenant:<id>`): its versions begin again. */
  drop(changed: string): void
}

declare module '#server/services.ts' {
  interface Services {
    readonly statements: Statements
  }
}

/** The bytes of compiled statements that a process keeps, by default, and the part of them that one project may have. */
const keptBytes = 64 * 1_048_576
const partOfPlace = 16
const keptPlaces = 5_000
/** Names that one connection has prepared. */
const preparedPerConnection = 100
/** A text as long as this is one caller's oddity: it is parsed each time and kept nowhere. */
const longest = 32_768
const attempts = 8

type Names = Lru<string>
/** What is kept, with its bytes: twice the JSON that it was read from, as heap snapshots show, with its key. */
type Kept = { readonly compiled: Compiled; readonly bytes: number }
type Compilations = Lru<Kept>

/** Keeps compiled statements, runs them, and finds out what a failure means by asking the compiler again. */
export const createStatements = (database: Database, mostBytes: number = keptBytes): Statements => {
  let bytes = 0
  const places = createLru<Compilations>(keptPlaces, { dispose: (kept) => kept.clear() })
  const compiling = new Map<string, Promise<Kept>>()
  const prepared = new WeakMap<object, Names>()
  let numbered = 0

  const keptFor = (place: Place) => {
    const key = `${place.cluster.id}/${place.database}`
    const known = places.get(key)
    if (known) return known
    const made: Compilations = createLru(Math.ceil(mostBytes / partOfPlace), {
      bytesOf: (kept) => kept.bytes,
      dispose: (kept) => {
        bytes -= kept.bytes
      },
    })
    places.set(key, made)
    return made
  }

  /** Keeps a statement; the projects that have asked for none for longest lose all of theirs to make room. */
  const keep = (place: Place, key: string, made: Kept) => {
    const kept = keptFor(place)
    if (made.bytes > kept.maxSize) return
    kept.set(key, made)
    bytes += made.bytes
    while (bytes > mostBytes && places.size > 1) places.pop()
  }

  const compile = async (
    place: Place,
    role: Role,
    claims: Omit<Claims, 'role'>,
    { kind, collection, request }: Question,
    settings: CallSettings,
  ): Promise<Kept> => {
    const args = { kind, collection, request }
    const reply = await database.call(place, role, claims, 'collection_statement', args, {
      ...settings,
      readOnly: true,
    })
    const { data } = JSON.parse(reply.body) as { data: CompiledJson }
    numbered += 1
    const compiled = readCompiled(data, data.text.length > longest ? '' : `c${numbered}`)
    return { compiled, bytes: 2 * reply.body.length }
  }

  /** The cached statement of this shape, or a new one; concurrent callers wait for one that is being compiled. */
  const statementOf = async (
    place: Place,
    role: Role,
    claims: Omit<Claims, 'role'>,
    question: Question,
    settings: CallSettings,
  ): Promise<Compiled> => {
    const key = keyOf(role, question)
    const kept = keptFor(place)
    const known = kept.get(key)
    if (known) return known.compiled
    const flight = `${place.cluster.id}/${place.database} ${key}`
    const running = compiling.get(flight)
    if (running) return (await running).compiled
    const made = compile(place, role, claims, question, settings)
      .then((found) => {
        const made = { ...found, bytes: found.bytes + 2 * key.length }
        if (made.compiled.name && key.length <= longest) keep(place, key, made)
        return made
      })
      .finally(() => compiling.delete(flight))
    // one that waits and one that asked fail alike, and only once each
    compiling.set(flight, made)
    return (await made).compiled
  }

  /** As this connection runs it: under its name, and with the name that must go for it. */
  const prepareOn = (client: object, { name, text }: Compiled, values: readonly (string | null)[]): Statement => {
    if (!name) return { name, text, values }
    let names = prepared.get(client)
    if (!names) {
      names = createLru(preparedPerConnection)
      prepared.set(client, names)
    }
    if (names.get(name)) return { name, text, values }
    // evicted by hand, because Postgres must close the statement that goes
    const evicted = names.size >= preparedPerConnection ? names.pop() : undefined
    names.set(name, name)
    return { name, text, values, ...(evicted ? { evicted: [evicted] } : {}) }
  }

  /** One run of a statement: the version that it met, and what it answers, null where nothing was written. */
  const run = async (
    place: Place,
    role: Role,
    claims: Omit<Claims, 'role'>,
    compiled: Compiled,
    { kind, request }: Question,
    values: readonly (string | null)[],
    settings: CallSettings,
  ): Promise<{ readonly version: string | null; readonly reply: Answered | null }> => {
    const { raw, pages } = compiled
    const operation = `collection ${kind}`
    const prepare = (client: object) => ({ ...prepareOn(client, compiled, values), operation })
    if (!raw) {
      const { row, milliseconds } = await database.execute(place, role, claims, prepare, settings)
      const [status, , , , , version = null] = row
      const reply = status === '0' ? null : { ...replyOf(row, kind), milliseconds, next: null, pages, cut: null }
      return { version, reply }
    }
    const limit = raw.missing === null ? Number(request['limit']) : 1
    const reader = createRowReader(raw, limit, request['include'] !== undefined)
    const { milliseconds } = await database.execute(
      place,
      role,
      claims,
      (client) => ({
        ...prepare(client),
        formats: raw.formats,
        take: reader.take,
        isEnough: () => reader.isFull,
      }),
      settings,
    )
    const { status, version, headers, next, isFull, shown } = reader
    const answer = { status: Number(status), body: reader.body(), headers, dueAt: null, changed: [] }
    return { version, reply: { ...answer, milliseconds, next, pages, cut: isFull ? shown : null } }
  }

  return {
    get state() {
      let entries = 0
      for (const kept of places.values()) entries += kept.size
      return { bytes, places: places.size, entries }
    },
    drop(changed) {
      if (changed.startsWith('tenant:')) places.clear()
    },
    async check(place, role, claims, question, settings) {
      const counted = { milliseconds: 0, dueAt: null, changed: [] }
      try {
        const compiled = await statementOf(place, role, claims, question, settings)
        return { ...counted, version: rowsFit(compiled, question.request) ? compiled.version : null }
      } catch (error) {
        if (error instanceof ApiError && error.status < 500) return { ...counted, version: null }
        throw error
      }
    },
    async ask(place, role, claims, question, settings) {
      const { kind, collection, request } = question
      const forget = () => keptFor(place).delete(keyOf(role, question))
      const explain = async (compiled: Compiled, error: DatabaseError | null) => {
        const { code, constraint = null, column = null } = error ?? {}
        return database.call(
          place,
          role,
          claims,
          'collection_explain',
          {
            kind,
            collection,
            request,
            version: compiled.version,
            ...(error ? { error: { code, constraint, column } } : {}),
          },
          { ...settings, readOnly: true },
        )
      }

      for (let attempt = 0; attempt < attempts; attempt += 1) {
        const compiled = await statementOf(place, role, claims, question, settings)
        const values = bindValues(compiled, request)
        let failure: DatabaseError | null = null
        if (values) {
          try {
            const answered = await run(place, role, claims, compiled, question, values, settings)
            if (answered.version !== compiled.version) {
              forget()
              continue
            }
            if (answered.reply) return answered.reply
          } catch (error) {
            failure = error as DatabaseError
            // a version that a write met, or types that are not those of the compiled statement any more
            if (failure.code === 'TR001' || failure.code === '0A000') {
              forget()
              continue
            }
            if (isDeadlock(failure)) {
              await waitBeforeRetry(attempt)
              continue
            }
            const { kind: sort } = failureOf(failure)
            if (sort === 'refusal' || sort === 'unavailable')
              throw await database.explain(failure, place, role, kind, settings)
          }
        }
        const explained = await explain(compiled, failure)
        if (explained.status > 0) return { ...explained, next: null, pages: false, cut: null }
        if (explained.status < 0 && failure) throw await database.explain(failure, place, role, kind, settings)
        forget()
      }
      throw refusal(503, 'TENANT_UNAVAILABLE', 'The collection is changing: try again in a moment.', null, {
        'Retry-After': '2',
      })
    },
  }
}

const keyOf = (role: Role, { kind, collection, shape }: Question) => `${role} ${kind} ${collection} ${shape}`
