/** What a metric is called (OpenTelemetry's semantic conventions where they name it), its unit (UCUM), and what its value says. */
type Instrument = {
  readonly kind: 'histogram' | 'counter' | 'gauge'
  readonly name: string
  readonly unit: string
  readonly description: string
  readonly attributes: readonly string[]
}

const instrument = (
  kind: Instrument['kind'],
  name: string,
  unit: string,
  description: string,
  ...attributes: string[]
): Instrument => ({ kind, name, unit, description, attributes })

/** Every metric of a process. docs/metrics.md, the dashboard and the alert rules in deploy/ are checked against this list. */
export const instruments = {
  requests: instrument(
    'histogram',
    'http.server.request.duration',
    's',
    'Requests of declared routes, from the first byte read to the last byte written.',
    'http.request.method',
    'http.route',
    'http.response.status_code',
  ),
  calls: instrument(
    'histogram',
    'db.client.operation.duration',
    's',
    'Database calls, without the wait for a connection. `outcome` is ok or failed; a declared refusal counts as failed.',
    'trellis.database',
    'trellis.caller',
    'outcome',
  ),
  jobs: instrument('histogram', 'trellis.job.duration', 's', 'Jobs of the control queue that ran.', 'task', 'outcome'),
  outboxTasks: instrument(
    'histogram',
    'trellis.outbox.task.duration',
    's',
    'Outbox rows of tenants that ran, deliveries of webhooks among them.',
    'task',
    'outcome',
  ),
  providerCalls: instrument(
    'histogram',
    'trellis.provider.call.duration',
    's',
    'Calls of the APIs of providers with their retries. `outcome` is the class of the status, or the failure.',
    'provider',
    'outcome',
  ),
  deliveries: instrument(
    'counter',
    'trellis.delivery',
    '{attempt}',
    'Attempts to deliver: webhooks to their receivers, push messages to devices, mail to the mail server. One that failed may be tried again.',
    'channel',
    'outcome',
  ),
  connectionsOpen: instrument('gauge', 'db.client.connection.count', '{connection}', 'Open connections.', 'state'),
  connectionsMost: instrument(
    'gauge',
    'db.client.connection.max',
    '{connection}',
    'Most connections that this process opens.',
  ),
  leases: instrument(
    'gauge',
    'trellis.pool.leases',
    '{connection}',
    'Connections in use, by kind of caller, of all databases together.',
    'trellis.caller',
  ),
  waiters: instrument(
    'gauge',
    'trellis.pool.waiters',
    '{call}',
    'Calls that wait for a connection, by kind of caller.',
    'trellis.caller',
  ),
  refusals: instrument(
    'counter',
    'trellis.pool.refusals',
    '{call}',
    'Calls that got no connection: `busy` waited in vain, `user` had too many of their own under way, `gone` hung up.',
    'trellis.caller',
    'reason',
  ),
  busiestLeases: instrument(
    'gauge',
    'trellis.pool.tenant.leases',
    '{connection}',
    'Connections in use of the ten databases that use most.',
    'trellis.tenant',
  ),
  busiestWaiters: instrument(
    'gauge',
    'trellis.pool.tenant.waiters',
    '{call}',
    'Calls that wait for a connection of these databases.',
    'trellis.tenant',
  ),
  cacheHits: instrument('counter', 'trellis.cache.hits', '{lookup}', 'Look-ups that a cache answered.', 'cache'),
  cacheMisses: instrument('counter', 'trellis.cache.misses', '{lookup}', 'Look-ups that a cache had to load.', 'cache'),
  cacheEntries: instrument('gauge', 'trellis.cache.entries', '{entry}', 'Entries of a cache.', 'cache'),
  jobsReady: instrument(
    'gauge',
    'trellis.job.ready',
    '{job}',
    'Jobs of the control queue that are due and not locked.',
    'task',
  ),
  jobsOldest: instrument('gauge', 'trellis.job.oldest', 's', 'For how long the oldest of these has been due.', 'task'),
  jobsFailed: instrument('gauge', 'trellis.job.failed', '{job}', 'Jobs that used up their attempts.', 'task'),
  outboxDue: instrument(
    'gauge',
    'trellis.outbox.due',
    '{row}',
    'Due outbox rows of the ten tenants whose drain has waited longest; 10,000 stands for more.',
    'trellis.tenant',
  ),
  outboxOldest: instrument(
    'gauge',
    'trellis.outbox.oldest',
    's',
    'For how long the oldest of these has been due.',
    'trellis.tenant',
  ),
  projects: instrument(
    'gauge',
    'trellis.project.count',
    '{project}',
    'Projects by their state of provisioning.',
    'status',
  ),
  projectsBehind: instrument(
    'gauge',
    'trellis.project.behind',
    '{project}',
    'Projects that run an older program than this process, and those whose migration failed.',
    'state',
  ),
  postgresBackends: instrument(
    'gauge',
    'postgresql.backends',
    '{connection}',
    'Connections of all clients to the server of the control database.',
  ),
  postgresMost: instrument('gauge', 'postgresql.connection.max', '{connection}', 'max_connections of that server.'),
  postgresCommits: instrument(
    'counter',
    'postgresql.commits',
    '{transaction}',
    'Transactions committed, all databases of that server.',
  ),
  postgresRollbacks: instrument(
    'counter',
    'postgresql.rollbacks',
    '{transaction}',
    'Transactions rolled back, refusals among them.',
  ),
  postgresBlocks: instrument(
    'counter',
    'postgresql.blocks',
    '{block}',
    'Blocks read from disk, or found in shared buffers.',
    'source',
  ),
  postgresDeadlocks: instrument('counter', 'postgresql.deadlocks', '{deadlock}', 'Deadlocks that Postgres ended.'),
  postgresTemporary: instrument('counter', 'postgresql.temp_files.size', 'By', 'Bytes written to temporary files.'),
  postgresFreeze: instrument(
    'gauge',
    'postgresql.transaction_id.age',
    '{transaction}',
    'Age of the oldest transaction id that is not frozen; Postgres stops at two billion.',
  ),
  loopDelay: instrument(
    'gauge',
    'nodejs.eventloop.delay',
    's',
    'How late the event loop was since the last collection.',
    'quantile',
  ),
  loopUse: instrument(
    'gauge',
    'nodejs.eventloop.utilization',
    '1',
    'Part of the time since the last collection in which the event loop was busy.',
  ),
  processCpu: instrument('counter', 'process.cpu.time', 's', 'CPU time of this process.', 'cpu.mode'),
  processMemory: instrument('gauge', 'process.memory.usage', 'By', 'Resident memory of this process.'),
  heapUsed: instrument('gauge', 'v8js.memory.heap.used', 'By', 'Used part of the JavaScript heap.'),
} as const satisfies Record<string, Instrument>

export type InstrumentKey = keyof typeof instruments

/** The name under which Prometheus reads a metric, as its exporter makes it; a histogram adds _bucket, _sum and _count. */
export const prometheusName = ({ kind, name }: Instrument): string =>
  `${name.replaceAll('.', '_')}${kind === 'counter' ? '_total' : ''}`
