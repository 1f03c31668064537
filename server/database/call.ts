import type { Duplex } from 'node:stream'
import type { Client } from 'pg'
import { cancelStatement } from '#server/database/cancel.ts'
import type { TakeRow } from '#server/database/row_interceptor.ts'
import { interceptorOf } from '#server/database/row_interceptor.ts'
import { wireProtocol } from '#server/database/wire_protocol.ts'

/**
 * Who a call runs as. Every setting is set at every call, empty ones too, so that nothing which a function left behind
 * on the connection is ever seen by the next caller.
 */
export type Claims = {
  readonly role: string
  readonly caller?: string
  readonly userId?: string | null
  readonly sessionId?: string | null
  readonly developerId?: string | null
  readonly projectId?: string | null
  readonly actor?: string | null
}

export type CallOptions = {
  readonly readOnly?: boolean
  readonly timeoutMs: number
  /** The time that a test harness passes, ISO 8601; null means the database's own clock. */
  readonly clock: string | null
}

/**
 * One statement of a call: rows come back as text, one list of columns each. Without a name it is parsed each time.
 * `evicted` are names that this connection need not keep any longer.
 */
export type Statement = {
  readonly name: string
  readonly text: string
  readonly values: readonly (string | null)[]
  /** What a trace calls it: `api.name` where it is the call of a function. */
  readonly operation?: string
  readonly evicted?: readonly string[]
  /** The format of each column, 0 text and 1 binary; without it all are text. */
  readonly formats?: readonly number[]
  /** Is given the first row before the transaction is committed, which may fail still. */
  readonly beforeCommit?: (row: (string | null)[]) => void
  /** Takes each row as its bytes came, and then none is in what the call resolves with. */
  readonly take?: TakeRow
  /** Asked after each row that was taken: whether no other is wanted. The statement, which must only read, is then cancelled. */
  readonly isEnough?: () => boolean
}

const settings = [
  'role',
  'app.caller',
  'app.user_id',
  'app.session_id',
  'app.developer_id',
  'app.project_id',
  'app.actor',
  'app.clock',
  'app.due_at',
  'app.changed',
  'app.effects',
  'transaction_read_only',
  'statement_timeout',
  'search_path',
] as const

const setup = {
  name: 'trellis_setup',
  // one number instead of all the texts that set_config gives back
  text: `select pg_catalog.num_nonnulls(${settings.map((name, index) => `pg_catalog.set_config('${name}', $${index + 1}, true)`).join(', ')})`,
}

const setupValues = (claims: Claims, options: CallOptions): string[] => [
  claims.role,
  claims.caller ?? '',
  claims.userId ?? '',
  claims.sessionId ?? '',
  claims.developerId ?? '',
  claims.projectId ?? '',
  claims.actor ?? '',
  options.clock ?? '',
  '',
  '',
  '',
  options.readOnly ? 'on' : 'off',
  String(options.timeoutMs),
  '',
]

/** The part of pg's Connection that a Submittable writes to. */
type Wire = {
  parsedStatements: Record<string, string>
  stream: Duplex
}

/**
 * One Sync: set_config and then the target in a single packet and a single implicit transaction (docs/decisions.md).
 * The target is planned after the settings are made, so row-level security and privileges are those of the switched
 * role; Sync ends the transaction, so all settings are reset afterwards, also after an error in either part.
 * The promise settles at ReadyForQuery only: a deferred constraint fails after the rows have come.
 */
class OneSync {
  // pg marks a statement as parsed under this name when ParseComplete arrives; the setup is prepared beforehand
  readonly name: string | undefined
  readonly text: string
  readonly rows: (string | null)[][] = []
  callback: undefined
  readonly #statement: Statement
  readonly #values: string[]
  readonly #settle: (error: Error | null, rows: (string | null)[][]) => void
  readonly #named: boolean
  #statementsSeen = 0
  #settled = false
  #close: (() => void) | undefined
  #thrown: Error | null = null
  #cancelled: Promise<void> | undefined
  readonly #client: Client

  constructor(
    client: Client,
    statement: Statement,
    values: string[],
    named: boolean,
    settle: (error: Error | null, rows: (string | null)[][]) => void,
  ) {
    this.#client = client
    this.#statement = statement
    this.#values = values
    this.#named = named
    this.#settle = settle
    this.name = named && statement.name ? statement.name : undefined
    this.text = statement.text
  }

  submit(connection: unknown): Error | null {
    const wire = connection as Wire
    const name = this.#named ? this.#statement.name : ''
    let packet = ''
    // first of all: behind an error they would not be read
    for (const evicted of this.#named ? (this.#statement.evicted ?? []) : []) {
      packet += wireProtocol.close(evicted)
      delete wire.parsedStatements[evicted]
    }
    if (!this.#named) packet += wireProtocol.parse('', setup.text, settings.length)
    packet += wireProtocol.bind(this.#named ? setup.name : '', this.#values) + wireProtocol.execute
    if (!this.#named || wire.parsedStatements[name] === undefined)
      packet += wireProtocol.parse(name, this.#statement.text)
    packet +=
      wireProtocol.bind(name, this.#statement.values, this.#statement.formats) +
      wireProtocol.execute +
      // without it the row would wait for the commit
      (this.#statement.beforeCommit ? wireProtocol.flush : '') +
      wireProtocol.sync
    const { take, isEnough } = this.#statement
    if (take) {
      const guarded: TakeRow = (bytes, start, end) => {
        try {
          take(bytes, start, end)
          if (isEnough && !this.#cancelled && isEnough()) this.#cancelled = cancelStatement(this.#client)
        } catch (error) {
          // thrown into the socket it would end the process
          this.#thrown ??= error as Error
        }
      }
      this.#close = interceptorOf(wire.stream).open(() => (this.#statementsSeen === 1 ? guarded : undefined))
    }
    // one string, one write: pg would make a buffer for each message
    wire.stream.write(packet, 'latin1')
    return null
  }

  handleRowDescription(): void {}

  handleDataRow(message: { fields: (string | null)[] }): void {
    if (this.#statementsSeen !== 1) return
    this.rows.push(message.fields)
    if (this.rows.length === 1) this.#statement.beforeCommit?.(message.fields)
  }

  handleCommandComplete(): void {
    this.#statementsSeen += 1
  }

  handleEmptyQuery(): void {
    this.#statementsSeen += 1
  }

  handlePortalSuspended(): void {}

  handleError(error: Error): void {
    // after a cancellation the result is complete, and the error of the rest is ignored
    this.#finish(this.#cancelled ? this.#thrown : error)
  }

  handleReadyForQuery(): void {
    this.#finish(this.#thrown)
  }

  #finish(error: Error | null): void {
    if (this.#settled) return
    this.#settled = true
    const settle = () => {
      this.#close?.()
      this.#settle(error, this.rows)
    }
    // the connection is given back when no cancellation can come any more
    if (this.#cancelled) void this.#cancelled.then(settle)
    else settle()
  }
}

/**
 * Prepares the settings statement on a new connection. Its own Parse and Sync: were it parsed within the first call, an
 * error in that call would leave pg's book of parsed statements wrong.
 */
export const prepareConnection = async (client: Client): Promise<void> => {
  await client.query({ name: setup.name, text: setup.text, values: setupValues({ role: 'none' }, idle) })
}

// read-only, because a standby refuses anything else
const idle: CallOptions = { timeoutMs: 5000, clock: null, readOnly: true }

/** What a trigger leaves in one of the settings that answers carry, when the answer has been built already (`internal.return_setting`). */
export type OnSetting = (setting: string, value: string) => void

/** Who listens to the notices of a connection; one call at a time runs on it. */
const listeners = new WeakMap<Client, OnSetting | undefined>()

const listen = (client: Client, onSetting: OnSetting | undefined): void => {
  if (!listeners.has(client)) {
    client.on('notice', ({ code, message = '' }) => {
      const end = message.indexOf('=')
      if (code === 'TR002') listeners.get(client)?.(message.slice(0, end), message.slice(end + 1))
    })
  }
  listeners.set(client, onSetting)
}

/** Runs one statement under these claims: one round trip, one transaction. Rejects with what Postgres says. */
export const runOneSync = (
  client: Client,
  claims: Claims,
  statement: Statement,
  options: CallOptions,
  named = true,
  onSetting?: OnSetting,
): Promise<(string | null)[][]> =>
  new Promise((resolve, reject) => {
    listen(client, onSetting)
    const call = new OneSync(client, statement, setupValues(claims, options), named, (error, rows) =>
      error ? reject(error) : resolve(rows),
    )
    client.query(call as unknown as Parameters<Client['query']>[0])
  })
