import type { ServerResponse } from 'node:http'
import type { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus'
import type { Logger } from 'pino'
import { instruments, prometheusName } from '#server/telemetry/instruments.ts'

/** The media type of Prometheus' text format. */
const contentType = 'text/plain; version=0.0.4; charset=utf-8'

/** A histogram has no series before its first value: these stand for none, so that rules and dashboards find the family from the first collection on. */
const emptyHistograms = (text: string): string => {
  const lines: string[] = []
  for (const one of Object.values(instruments)) {
    const name = prometheusName(one)
    if (one.kind !== 'histogram' || text.includes(`# TYPE ${name} `)) continue
    const labels = one.attributes.map((attribute) => `${attribute.replaceAll('.', '_')}=""`).join(',')
    lines.push(
      `# HELP ${name} ${one.description}`,
      `# TYPE ${name} histogram`,
      `${name}_count{${labels}} 0`,
      `${name}_sum{${labels}} 0`,
      `${name}_bucket{${labels},le="+Inf"} 0`,
    )
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`
}

/** Answers a scrape. */
export const expose = async (
  exporter: PrometheusExporter,
  serializer: PrometheusSerializer,
  log: Pick<Logger, 'warn'>,
  response: ServerResponse,
): Promise<void> => {
  try {
    const { resourceMetrics, errors } = await exporter.collect()
    if (errors.length > 0) log.warn({ errors: errors.map(String) }, 'some metrics were not collected')
    const text = serializer.serialize(resourceMetrics)
    response.writeHead(200, { 'content-type': contentType }).end(text + emptyHistograms(text))
  } catch (error) {
    log.warn({ error: (error as Error).message }, 'metrics were not collected')
    response.writeHead(500).end()
  }
}
