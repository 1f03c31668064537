import type pg from 'pg'
import type { Finding } from '#fleet/checks/finding.ts'
import { type Comments, readComments, refusalsIn } from './interface.ts'

type Client = Pick<pg.Client, 'query'>

/** The literal calls `internal.fail(404, 'NOT_FOUND', ...)` and `internal.refuse(...)` of a body, without its comments: "404 NOT_FOUND". */
export const writtenIn = (body: string): string[] => {
  const code = body.replaceAll(/--[^\n]*/g, '').replaceAll(/\/\*[\s\S]*?\*\//g, '')
  const calls = code.matchAll(/\binternal\.(?:fail|refuse)\(\s*(4\d\d)\s*,\s*'([A-Z][A-Z_]+)'/g)
  return [...new Set([...calls].map(([, status, name]) => `${status} ${name}`))]
}

/** What a comment names in any of its sentences: "409 CONFLICT, LIMIT_REACHED" is two. */
export const namedIn = (comment: string): Set<string> => {
  const found = new Set<string>()
  let status = ''
  for (const [, number, code] of comment.matchAll(/\b([45]\d\d)\b|\b([A-Z][A-Z_]{3,})\b/g)) {
    if (number) status = number
    else if (status) found.add(`${status} ${code}`)
  }
  return found
}

/**
 * Functions whose bodies refuse what their comments do not name. A function of api names all; a helper that names none is described in words, and one that
 * names some names all.
 */
export const disagreements = (comments: Comments, bodies: readonly { name: string; body: string }[]) =>
  bodies.flatMap(({ name, body }) => {
    const named = namedIn(comments.get(name) ?? '')
    if (named.size === 0 && !name.startsWith('api.')) return []
    const handedOn = refusalsIn(comments, name)
    return writtenIn(body)
      .filter((one) => !named.has(one) && !handedOn[one.slice(0, 3)]?.includes(one.slice(4)))
      .map((refusal) => ({ name, refusal }))
  })

/** The document of a route takes the codes from the comments: one that is missing there, or another one, would be wrong in it. */
export const checkRefusals = async (client: Client, placeOf: (name: string) => string): Promise<Finding[]> => {
  const { rows } = await client.query<{ name: string; body: string }>(`
    select n.nspname || '.' || p.proname as name, coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc) as body
      from pg_catalog.pg_proc p
      join pg_catalog.pg_namespace n on n.oid = p.pronamespace and n.nspname in ('api', 'internal')
     where p.prokind = 'f'
     order by 1`)
  return disagreements(await readComments(client), rows).map(({ name, refusal }) => ({
    place: placeOf(name),
    severity: 'warning',
    problem: `${name} refuses ${refusal}, and its comment does not say so.`,
    remedy: `Write in its comment: Refuses ${refusal}. Or correct the code that stands there in its place.`,
  }))
}
