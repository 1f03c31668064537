import type { Answer, Route } from '#server/http/route.ts'

/** The headers by which a caller is known, for each scheme of the document. */
const headersOf: Readonly<Record<string, string>> = {
  ApiKey: 'X-Api-Key',
  Session: 'Authorization',
  Developer: 'Authorization',
  ServiceAccount: 'Authorization',
  OnBehalfOf: 'X-On-Behalf-Of',
}

const named = (vary: string | undefined) => vary?.split(',').map((name) => name.trim()) ?? []

/** Whether a cache may store an answer with these headers. */
export const isCacheable = (headers: Readonly<Record<string, unknown>> | null | undefined): boolean => {
  const control = Object.entries(headers ?? {}).find(([name]) => name.toLowerCase() === 'cache-control')?.[1]
  return control !== undefined && !/\bno-store\b/.test(String(control))
}

/** The headers that select the caller of a route, and with the caller the project: a cached answer is for nobody else. */
export const credentialsOf = ({ caller }: Pick<Route, 'caller'>): readonly string[] => [
  ...new Set(caller.security.flatMap((schemes) => Object.keys(schemes).map((name) => headersOf[name] ?? name))),
]

/** Adds those headers of a route to the Vary of an answer that a cache may store (RFC 9111, 4.1): its URL says nothing of the project. */
export const varyOf = (route: Route): ((answer: Answer) => Answer) => {
  const credentials = credentialsOf(route)
  return (answer) => {
    if (credentials.length === 0 || !answer.headers || !isCacheable(answer.headers)) return answer
    const headers = Object.fromEntries(
      Object.entries(answer.headers).map(([name, value]) => [name.toLowerCase(), value]),
    )
    const vary = [...new Set([...named(headers['vary']), ...credentials])].join(', ')
    return { ...answer, headers: { ...headers, vary } }
  }
}
