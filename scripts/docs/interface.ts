import type pg from 'pg'
import { answersIn, type Shape } from './answers.ts'
import { type Definition, definitionsIn } from './definitions.ts'

type Client = Pick<pg.Client, 'query'>
type Refusals = Readonly<Record<string, readonly string[]>>

/** Comments of functions by name, such as `api.streak_get`. Functions of one name have one comment each; what any of them refuses counts. */
export type Comments = ReadonlyMap<string, string>

/** What one kind of database says: the comments of its functions, the answers that they build, and the entities that developers define. */
export type Interface = {
  readonly comments: Comments
  readonly answers: readonly (readonly [string, Shape])[]
  readonly definitions: readonly (readonly [string, Definition])[]
}

const readComments = async (client: Client): Promise<Comments> => {
  const { rows } = await client.query<{ name: string; comment: string }>(`
    select n.nspname || '.' || p.proname as name, string_agg(pg_catalog.obj_description(p.oid, 'pg_proc'), e'\\n' order by p.oid) as comment
      from pg_catalog.pg_proc p
      join pg_catalog.pg_namespace n on n.oid = p.pronamespace and n.nspname in ('api', 'internal')
     group by n.nspname, p.proname
     order by n.nspname || '.' || p.proname collate "C"`)
  return new Map(rows.map(({ name, comment }) => [name, (comment ?? '').replace(/\s+/g, ' ')]))
}

/**
 * What a function refuses, by status: from its comment, "Refuses 404 NOT_FOUND, 409 CONFLICT, LIMIT_REACHED (50).", and from those that the comment
 * hands on to: "Refuses as internal.f", or what it is: "internal.f, for workers." and "Sets a level: internal.f."
 */
export const refusalsIn = (comments: Comments, name: string, seen: ReadonlySet<string> = new Set()): Refusals => {
  if (seen.has(name)) return {}
  const text = comments.get(name) ?? ''
  const found: Record<string, string[]> = {}
  const handedTo = [...text.matchAll(/(?:^|: )(internal\.\w+)(?=[.,:;]|$)/g)].map(([, other = '']) => other)
  const add = (status: string, code: string) => {
    found[status] ??= []
    const codes = found[status]
    if (!codes.includes(code)) codes.push(code)
  }
  for (const [sentence] of text.matchAll(/\bRefuses\b.*?(?=\. +[A-Z]|\.?$)/g)) {
    let status = ''
    for (const [, named, code, other] of sentence.matchAll(
      /\b(4\d\d)(?= [A-Z])|\b([A-Z][A-Z_]{3,})\b|\b(?:as|and) ((?:internal|api)\.\w+)/g,
    )) {
      if (named) status = named
      else if (code && status) add(status, code)
      else if (other) handedTo.push(other)
    }
  }
  for (const other of handedTo)
    for (const [status, codes] of Object.entries(refusalsIn(comments, other, new Set([...seen, name]))))
      for (const code of codes) add(status, code)
  return found
}

/** What the databases say of their interface, as JSON with a line for each function: server/http/interface.ts reads it. */
export const interfaceText = (of: Readonly<Record<'control' | 'tenant', Interface>>): string => {
  const kinds = Object.entries(of).map(([kind, { comments, answers, definitions }]) => {
    const refusals = [...comments.keys()]
      .filter((name) => name.startsWith('api.'))
      .flatMap((name) => {
        const found = Object.entries(refusalsIn(comments, name)).map(([status, codes]) => [status, codes.toSorted()])
        return found.length === 0 ? [] : [[name.slice(4), Object.fromEntries(found)] as const]
      })
    const parts = { refusals, answers, definitions }
    return `  "${kind}": {\n${Object.entries(parts)
      .map(([name, entries]) => `    "${name}": ${linesOf(entries)}`)
      .join(',\n')}\n  }`
  })
  return `{\n${kinds.join(',\n')}\n}\n`
}

const linesOf = (entries: readonly (readonly [string, unknown])[]): string => {
  const lines = entries.map(([name, value]) => `      ${JSON.stringify(name)}: ${JSON.stringify(value)}`)
  return lines.length === 0 ? '{}' : `{\n${lines.join(',\n')}\n    }`
}

export const interfaceFile = async (control: Client, tenant: Client): Promise<string> =>
  interfaceText({
    control: { comments: await readComments(control), answers: await answersIn(control), definitions: [] },
    tenant: {
      comments: await readComments(tenant),
      answers: await answersIn(tenant),
      definitions: await definitionsIn(tenant),
    },
  })
