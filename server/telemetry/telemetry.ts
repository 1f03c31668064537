import { timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import type { Config } from '#server/config.ts'
import { createMeasures, type Measures, noMeasures } from '#server/telemetry/measures.ts'
import type { Sources } from '#server/telemetry/sources.ts'
import { createTraces, noTraces, type Traces } from '#server/telemetry/traces.ts'

/** Metrics and traces of a process: off unless the environment names who reads them. */
export type Telemetry = {
  readonly measures: Measures
  readonly traces: Traces
  /** Exports what `sources` knows too, from here on. */
  observe(sources: Sources): void
  /** Answers GET /metrics on the port of the API; null where METRICS_TOKEN is not set. */
  readonly scrape: ((request: IncomingMessage, response: ServerResponse) => void) | null
  /** Listens on METRICS_PORT, if it is set. */
  listen(): Promise<void>
  /** The port that it listens on; null before it does. */
  port(): number | null
  close(): Promise<void>
}

declare module '#server/services.ts' {
  interface Services {
    readonly telemetry: Telemetry
  }
}

const off: Telemetry = {
  measures: noMeasures,
  traces: noTraces,
  observe: () => undefined,
  scrape: null,
  listen: async () => undefined,
  port: () => null,
  close: async () => undefined,
}

type Settings = Pick<Config, 'HOST' | 'METRICS_PORT' | 'METRICS_TOKEN'> & Parameters<typeof createTraces>[0]

/**
 * OpenTelemetry's own SDK: Prometheus text for who asks, OTLP sent every minute. Its modules are read only where one of these is wanted, 20 MB
 * and a tenth of a second that other processes do not spend.
 */
export const createTelemetry = async (config: Settings, log: Logger): Promise<Telemetry> => {
  const { METRICS_PORT, METRICS_TOKEN, OTEL_EXPORTER_OTLP_ENDPOINT } = config
  const isScraped = METRICS_PORT !== undefined || METRICS_TOKEN !== undefined
  if (!isScraped && OTEL_EXPORTER_OTLP_ENDPOINT === undefined) return off
  const [{ MeterProvider, PeriodicExportingMetricReader }, { resourceFromAttributes }, { observe }] = await Promise.all(
    [import('@opentelemetry/sdk-metrics'), import('@opentelemetry/resources'), import('#server/telemetry/sources.ts')],
  )
  const named = { 'service.name': 'trellis', 'process.pid': process.pid }
  const resource = resourceFromAttributes(named)
  const traces = await createTraces(config, named, log)
  const [{ PrometheusExporter, PrometheusSerializer }, { expose }] = await Promise.all([
    import('@opentelemetry/exporter-prometheus'),
    import('#server/telemetry/exposition.ts'),
  ])
  const serializer = new PrometheusSerializer(undefined, false, undefined, true, true)
  const prometheus = isScraped
    ? new PrometheusExporter({ preventServerStart: true, withoutScopeInfo: true, withoutTargetInfo: true })
    : null
  const readers = [
    ...(prometheus ? [prometheus] : []),
    ...(OTEL_EXPORTER_OTLP_ENDPOINT === undefined
      ? []
      : [
          new PeriodicExportingMetricReader({
            exporter: await otlpExporter(OTEL_EXPORTER_OTLP_ENDPOINT),
            exportTimeoutMillis: 5000,
          }),
        ]),
  ]
  const provider = new MeterProvider({
    resource,
    readers,
    // a series for each route and status that was seen; the default is 2,000 in all
    views: [{ instrumentName: 'http.server.request.duration', aggregationCardinalityLimit: 10_000 }],
  })
  const meter = provider.getMeter('trellis')
  let observing: ReturnType<typeof observe> | undefined

  const server =
    METRICS_PORT === undefined || !prometheus
      ? undefined
      : createServer((request, response) => {
          const path = request.url?.split('?')[0]
          if (request.method !== 'GET' && request.method !== 'HEAD')
            response.writeHead(405, { allow: 'GET, HEAD' }).end()
          else if (path !== '/metrics') response.writeHead(404).end()
          else if (METRICS_TOKEN !== undefined && !isBearer(request, METRICS_TOKEN))
            response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
          else void expose(prometheus, serializer, log, response)
        })

  return {
    measures: createMeasures(meter),
    traces,
    observe(sources) {
      observing = observe(meter, sources)
    },
    scrape:
      METRICS_TOKEN === undefined || !prometheus
        ? null
        : (request, response) => {
            if (isBearer(request, METRICS_TOKEN)) void expose(prometheus, serializer, log, response)
            else response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
          },
    async listen() {
      if (!server || server.listening) return
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(METRICS_PORT, config.HOST, resolve)
      })
      log.info({ port: portOf(server.address()) }, 'metrics are served at /metrics')
    },
    port: () => portOf(server?.address() ?? null),
    async close() {
      server?.close()
      server?.closeAllConnections()
      // sends what OTLP has not had yet, while the databases still answer
      await Promise.all([
        traces.close(),
        // the export has a limit of its own, and what waits for its end has none: a collector that sends a byte now and then would hold the stop
        provider
          .shutdown({ timeoutMillis: 5000 })
          .catch((error: Error) => log.warn({ error: error.message }, 'the last metrics were not sent')),
      ])
      observing?.close()
    },
  }
}

const otlpExporter = async (endpoint: string) => {
  const { OTLPMetricExporter } = await import('@opentelemetry/exporter-metrics-otlp-http')
  return new OTLPMetricExporter({ url: `${endpoint.replace(/\/+$/, '')}/v1/metrics`, timeoutMillis: 3000 })
}

const portOf = (address: ReturnType<Server['address']>): number | null =>
  typeof address === 'object' ? (address?.port ?? null) : null

const isBearer = ({ headers }: IncomingMessage, token: string): boolean => {
  const sent = Buffer.from(headers.authorization ?? '')
  const expected = Buffer.from(`Bearer ${token}`)
  return sent.length === expected.length && timingSafeEqual(sent, expected)
}
