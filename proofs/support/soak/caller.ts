// Requests as an app makes them: to any server that answers, again when none did, and each answer held against the declaration of its route.
import { setTimeout as sleep } from 'node:timers/promises'
import { loadAreas } from '#server/http/areas.ts'
import type { Area, Route } from '#server/http/route.ts'
import { problemOf } from '#test/support/declared.ts'
import type { ask } from '#test/support/process.ts'
import { address } from '../../../bench/support/installation.ts'

export type Answer = Awaited<ReturnType<typeof ask>>
export type Headers = Readonly<Record<string, string>>

type Declared = { readonly area: Area; readonly route: Route; readonly pattern: RegExp; readonly parameters: number }

const declaredRoutes = async (): Promise<readonly Declared[]> => {
  const found = (await loadAreas()).flatMap((area) =>
    area.routes.map((route) => {
      const parts = route.path.split('/')
      const pattern = parts.map((part) =>
        part.startsWith(':') ? '[^/]+' : part === '*' ? '.+' : part.replace(/[.+]/g, '\\$&'),
      )
      const parameters = parts.filter((part) => part.startsWith(':') || part === '*').length
      return { area, route, pattern: new RegExp(`^${pattern.join('/')}$`), parameters }
    }),
  )
  // a path that is written out comes before one with a parameter in its place
  return found.sort((a, b) => a.parameters - b.parameters)
}

const patienceMs = 180_000

export type Caller = Awaited<ReturnType<typeof createCaller>>

export const createCaller = async (urls: readonly string[]) => {
  const routes = await declaredRoutes()
  const known = new Map<string, Declared | null>()
  const statuses = new Map<string, number>()
  const undeclared = new Map<string, string>()
  const used = new Set<string>()
  const unavailable: number[] = []
  const took: { readonly at: number; readonly ms: number }[] = []
  let requests = 0
  let turn = 0

  const declaredOf = (method: string, path: string): Declared | null => {
    const key = `${method} ${path}`
    const had = known.get(key)
    if (had !== undefined) return had
    if (known.size > 50_000) known.clear()
    const found = routes.find(({ route, pattern }) => route.method === method && pattern.test(path)) ?? null
    known.set(key, found)
    return found
  }
  const count = (what: string) => statuses.set(what, (statuses.get(what) ?? 0) + 1)

  /** One request to one server; null when nothing came back. */
  const once = async (
    url: string,
    method: string,
    path: string,
    body: unknown,
    headers: Headers,
  ): Promise<Answer | null> => {
    requests += 1
    const began = Date.now()
    let response: Response
    let text: string
    try {
      response = await fetch(url + path, {
        method,
        headers: { ...headers, ...address(), ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(60_000),
      })
      text = await response.text()
    } catch {
      count('no answer')
      unavailable.push(Date.now())
      return null
    }
    const { status } = response
    if (status === 503) unavailable.push(Date.now())
    if (requests % 20 === 0) took.push({ at: began, ms: Date.now() - began })
    const [plain = path] = path.replace(/^\/v1/, '').split('?')
    const declared = declaredOf(method, plain)
    const name = declared ? `${method} ${declared.route.path}` : `${method} ${plain}`
    used.add(name)
    const problem = declared
      ? problemOf(declared.route, declared.area, status, text, Object.fromEntries(response.headers))
      : `${name} is no route`
    if (problem && undeclared.size < 50) undeclared.set(problem.slice(0, 400), new Date().toISOString())
    const isJson = String(response.headers.get('content-type')).startsWith('application/json')
    const parsed = isJson ? JSON.parse(text) : text
    count(status < 400 ? String(status) : `${status} ${parsed.error?.code}`)
    return { status, body: parsed }
  }

  return {
    statuses: statuses as ReadonlyMap<string, number>,
    /** What no declaration allows, with the time. */
    undeclared: undeclared as ReadonlyMap<string, string>,
    /** Routes that were asked. */
    used: used as ReadonlySet<string>,
    requests: () => requests,
    /** When a request got no answer, or 503. */
    unavailable: unavailable as readonly number[],
    /** How long every twentieth answer took. */
    took: took as readonly { readonly at: number; readonly ms: number }[],
    /** Asked once: null when there was no answer, or none but that one should come again. */
    async ask(method: string, path: string, body?: unknown, headers: Headers = {}): Promise<Answer | null> {
      turn += 1
      const answer = await once(urls[turn % urls.length] ?? '', method, path, body, headers)
      return answer && answer.status !== 503 ? answer : null
    },
    /** Asked until there is an answer, by whichever server: for what does the same when it comes twice. */
    async insist(method: string, path: string, body?: unknown, headers: Headers = {}): Promise<Answer> {
      const until = Date.now() + patienceMs
      for (;;) {
        turn += 1
        const answer = await once(urls[turn % urls.length] ?? '', method, path, body, headers)
        if (answer && answer.status !== 503 && answer.status !== 429) return answer
        if (Date.now() > until) throw new Error(`${method} ${path} was not answered for ${patienceMs / 1000} s`)
        await sleep(100)
      }
    },
  }
}
