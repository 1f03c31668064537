import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll } from 'vitest'
import type { Harness } from '#test/support/harness.ts'

type Rows = Record<string, Record<string, Record<string, unknown>>>
type Op = { op: string; kind: string; key: string; diff: Record<string, [unknown, unknown]> }

const fieldsOf = (was: Record<string, unknown> = {}, now: Record<string, unknown> = {}): Op['diff'] => {
  const names = [...new Set([...Object.keys(was), ...Object.keys(now)])].sort()
  const differing = names.filter((name) => JSON.stringify(was[name]) !== JSON.stringify(now[name]))
  return Object.fromEntries(differing.map((name) => [name, [was[name] ?? null, now[name] ?? null]]))
}

const opsOf = (was: Rows, now: Rows, prune: boolean): Op[] => {
  const kinds = [...new Set([...Object.keys(was), ...Object.keys(now)])].sort()
  return kinds.flatMap((kind) => {
    const [here, there] = [was[kind] ?? {}, now[kind] ?? {}]
    return [...new Set([...Object.keys(here), ...Object.keys(there)])].sort().flatMap((key): Op[] => {
      const op = !here[key] ? 'create' : there[key] ? 'update' : 'delete'
      const diff = fieldsOf(here[key], there[key])
      return (op === 'delete' && !prune) || Object.keys(diff).length === 0 ? [] : [{ op, kind, key, diff }]
    })
  })
}

const textOf = async (request: IncomingMessage): Promise<string> => {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}

export type ImportRoute = {
  readonly url: string
  /** The bodies that the route got. */
  readonly bodies: any[]
  /** The text of the last one, digits and all. */
  readonly texts: string[]
  /** What the project has, as an import left it; null for what the server says. */
  applied: Rows | null
  blocked: { kind: string; key: string; code: string; reason: string }[]
  /** Called between a plan and the import that applies it. */
  between: (() => void) | undefined
  /** The server is older than the route. */
  isMissing: boolean
}

/**
 * A server in front of the harness's, which takes the import of a document as the contract has it: a plan by comparison with the export, and an
 * import that is refused when the plan is another one by then. Everything else goes through, with its credentials.
 */
export const startImportRoute = async (harness: Harness): Promise<ImportRoute> => {
  const made: { -readonly [K in keyof ImportRoute]: ImportRoute[K] } = {
    url: '',
    bodies: [],
    texts: [],
    applied: null,
    blocked: [],
    between: undefined,
    isMissing: false,
  }
  const server = createServer(async (request, response) => {
    const text = await textOf(request)
    const path = request.url ?? ''
    const headers = { authorization: request.headers.authorization ?? '', 'content-type': 'application/json' }
    const answer = (status: number, body: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
    if (made.isMissing || !path.includes('/promotion/import?')) {
      const init = { method: request.method ?? 'GET', headers, ...(text === '' ? {} : { body: text }) }
      const real = await fetch(`${harness.url}${path}`, init)
      response.writeHead(real.status, { 'content-type': real.headers.get('content-type') ?? '' })
      return response.end(await real.text())
    }
    const exported = await fetch(`${harness.url}${path.replace(/import\?.*$/, 'export')}`, { headers })
    const found: any = await exported.json()
    if (exported.status !== 200) return answer(exported.status, found)
    const body = { ...JSON.parse(text), dry_run: !path.endsWith('?dry_run=false') }
    made.bodies.push(body)
    made.texts.push(text)
    if (!body.dry_run) made.between?.()
    const ops = opsOf(made.applied ?? found.data.definitions, body.document.definitions, body.prune === true)
    const plan_hash = createHash('sha256').update(JSON.stringify(ops)).digest('hex')
    const { blocked } = made
    if (body.dry_run) {
      return answer(200, { data: { plan_hash, clean: ops.length + blocked.length === 0, ops, blocked } })
    }
    if (body.plan_hash !== plan_hash) {
      return answer(409, { error: { code: 'PLAN_CHANGED', message: 'The plan has changed.' } })
    }
    made.applied = body.document.definitions
    return answer(202, { data: { operation_id: crypto.randomUUID(), status: 'succeeded', plan_hash } })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  afterAll(() => void server.close())
  made.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return made
}
