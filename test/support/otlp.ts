import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

type Value = {
  stringValue?: string
  intValue?: number | string
  doubleValue?: number
  boolValue?: boolean
  arrayValue?: { values?: Value[] }
}
type Pair = { readonly key: string; readonly value: Value }

/** A span as its exporter sent it, read by the names of the protocol (opentelemetry-proto, trace/v1, in its JSON form). */
export type Received = {
  readonly name: string
  readonly kind: number
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly began: bigint
  readonly ended: bigint
  readonly isFailed: boolean
  readonly message: string
  readonly attributes: Readonly<Record<string, unknown>>
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[]
  readonly resource: Readonly<Record<string, unknown>>
}

const plainOf = ({ stringValue, intValue, doubleValue, boolValue, arrayValue }: Value): unknown => {
  if (arrayValue) return (arrayValue.values ?? []).map(plainOf)
  return stringValue ?? boolValue ?? doubleValue ?? Number(intValue)
}
const attributesOf = (pairs: readonly Pair[] = []) =>
  Object.fromEntries(pairs.map(({ key, value }) => [key, plainOf(value)]))

const id = (text: string | undefined, length: number): string => {
  if (text === undefined || !new RegExp(`^[0-9a-f]{${length}}$`).test(text)) throw new Error(`no id: ${text}`)
  return text
}

const spansOf = (body: any): Received[] =>
  body.resourceSpans.flatMap(({ resource, scopeSpans }: any) =>
    scopeSpans.flatMap(({ spans }: any) =>
      spans.map((span: any) => ({
        name: span.name,
        kind: span.kind,
        traceId: id(span.traceId, 32),
        spanId: id(span.spanId, 16),
        parentSpanId: span.parentSpanId ? id(span.parentSpanId, 16) : '',
        began: BigInt(span.startTimeUnixNano),
        ended: BigInt(span.endTimeUnixNano),
        isFailed: span.status?.code === 2,
        message: span.status?.message ?? '',
        attributes: attributesOf(span.attributes),
        links: (span.links ?? []).map((link: any) => ({ traceId: id(link.traceId, 32), spanId: id(link.spanId, 16) })),
        resource: attributesOf(resource.attributes),
      })),
    ),
  )

/** A collector of OpenTelemetry: a server that takes OTLP over HTTP. `status` is what it answers. */
export const startCollector = async (status = 200) => {
  const spans: Received[] = []
  const paths: string[] = []
  const texts: string[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      paths.push(request.url ?? '')
      if (request.url === '/v1/traces') {
        texts.push(text)
        spans.push(...spansOf(JSON.parse(text)))
      }
      response.writeHead(status, { 'content-type': 'application/json' }).end('{}')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    paths,
    texts,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
