import type { Attributes, Counter, Histogram, Meter } from '@opentelemetry/api'
import { kindsOfTenant } from '#server/database/shares.ts'
import { type InstrumentKey, instruments } from '#server/telemetry/instruments.ts'

/** What the parts of a server report as it happens. Everything else is read when metrics are collected (sources.ts). */
export type Measures = {
  request(method: string, route: string, status: number, milliseconds: number): void
  call(database: 'control' | 'tenant', caller: string, outcome: 'ok' | 'failed', milliseconds: number): void
  refusedLease(caller: string, reason: 'busy' | 'user' | 'gone'): void
  job(task: string, outcome: 'done' | 'again' | 'failed' | 'stopped', milliseconds: number): void
  outboxTask(task: string, outcome: 'done' | 'failed' | 'stopped', milliseconds: number): void
  providerCall(provider: string, outcome: string, milliseconds: number): void
  delivery(channel: Channel, outcome: DeliveryOutcome): void
}

export const channels = ['webhook', 'push', 'mail'] as const
export const deliveryOutcomes = ['delivered', 'failed'] as const
export type Channel = (typeof channels)[number]
export type DeliveryOutcome = (typeof deliveryOutcomes)[number]

/** Where metrics are off: nothing is kept. */
export const noMeasures: Measures = {
  request: () => undefined,
  call: () => undefined,
  refusedLease: () => undefined,
  job: () => undefined,
  outboxTask: () => undefined,
  providerCall: () => undefined,
  delivery: () => undefined,
}

const seconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

const histogram = (meter: Meter, key: InstrumentKey): Histogram => {
  const { name, unit, description } = instruments[key]
  return meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: seconds } })
}

const counter = (meter: Meter, key: InstrumentKey): Counter => {
  const { name, unit, description } = instruments[key]
  return meter.createCounter(name, { unit, description })
}

/** One object for each set of values: the SDK then reads the attributes of the same few objects, and a request allocates none. */
const attributesOf = <T extends readonly (string | number)[]>(make: (...values: T) => Attributes) => {
  const made = new Map<string, Attributes>()
  return (...values: T): Attributes => {
    const key = values.join('\n')
    let attributes = made.get(key)
    if (!attributes) {
      attributes = make(...values)
      made.set(key, attributes)
    }
    return attributes
  }
}

export const createMeasures = (meter: Meter): Measures => {
  const requests = histogram(meter, 'requests')
  const calls = histogram(meter, 'calls')
  const jobs = histogram(meter, 'jobs')
  const outboxTasks = histogram(meter, 'outboxTasks')
  const providerCalls = histogram(meter, 'providerCalls')
  const refusals = counter(meter, 'refusals')
  const deliveries = counter(meter, 'deliveries')

  const ofRequest = attributesOf((method: string, route: string, status: number) => ({
    'http.request.method': method,
    'http.route': route,
    'http.response.status_code': status,
  }))
  const ofCall = attributesOf((database: string, caller: string, outcome: string) => ({
    'trellis.database': database,
    'trellis.caller': caller,
    outcome,
  }))
  const ofRefusal = attributesOf((caller: string, reason: string) => ({ 'trellis.caller': caller, reason }))
  const ofTask = attributesOf((task: string, outcome: string) => ({ task, outcome }))
  const ofProvider = attributesOf((provider: string, outcome: string) => ({ provider, outcome }))

  const ofDelivery = attributesOf((channel: string, outcome: string) => ({ channel, outcome }))

  // a counter is there from the first collection on
  for (const channel of channels)
    for (const outcome of deliveryOutcomes) deliveries.add(0, ofDelivery(channel, outcome))
  for (const caller of Object.values(kindsOfTenant).flat())
    for (const reason of ['busy', 'user', 'gone']) refusals.add(0, ofRefusal(caller, reason))

  return {
    request: (method, route, status, ms) => requests.record(ms / 1000, ofRequest(method, route, status)),
    call: (database, caller, outcome, ms) => calls.record(ms / 1000, ofCall(database, caller, outcome)),
    refusedLease: (caller, reason) => refusals.add(1, ofRefusal(caller, reason)),
    job: (task, outcome, ms) => jobs.record(ms / 1000, ofTask(task, outcome)),
    outboxTask: (task, outcome, ms) => outboxTasks.record(ms / 1000, ofTask(task, outcome)),
    providerCall: (provider, outcome, ms) => providerCalls.record(ms / 1000, ofProvider(provider, outcome)),
    delivery: (channel, outcome) => deliveries.add(1, ofDelivery(channel, outcome)),
  }
}
