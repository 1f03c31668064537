import type pg from 'pg'
import { answersIn, type Shape } from './answers.ts'
import { type Definition, definitionsIn, isConstant } from './definitions.ts'

type Client = Pick<pg.Client, 'query'>
type Refusals = Readonly<Record<string, readonly string[]>>

/** Comments of functions by name, such as `api.streak_get`. Functions of one name have one comment each; what any of them refuses counts. */
export type Comments = ReadonlyMap<string, string>

/** What one kind of database says: the comments of its functions, the answers that they build, and the entities that developers define. */
export type Interface = {
  readonly comments: Comments
  /** The constants that functions of `api` take for parameters that are left out, by function. */
  readonly defaults: readonly (readonly [string, Readonly<Record<string, unknown>>])[]
  readonly answers: readonly (readonly [string, Shape])[]
  readonly definitions: readonly (readonly [string, Definition])[]
}

export const readComments = async (client: Client): Promise<Comments> => {
  const { rows } = await client.query<{ name: string; comment: string }>(`
    select n.nspname || '.' || p.proname as name, string_agg(pg_catalog.obj_description(p.oid, 'pg_proc'), e'\\n' order by p.oid) as comment
      from pg_catalog.pg_proc p
      join pg_catalog.pg_namespace n on n.oid = p.pronamespace and n.nspname in ('api', 'internal')
     group by n.nspname, p.proname
     order by n.nspname || '.' || p.proname collate "C"`)
  return new Map(rows.map(({ name, comment }) => [name, (comment ?? '').replace(/\s+/g, ' ')]))
}

/** The constants that parameters have when they are left out. Those that are null then say nothing: what follows is the function's. */
const readDefaults = async (client: Client): Promise<[string, Record<string, unknown>][]> => {
  const { rows } = await client.query<{ name: string; names: string[]; usual: string }>(`
    select p.proname as name, pg_catalog.pg_get_expr(p.proargdefaults, 0) as usual,
           (p.proargnames[1:p.pronargs])[p.pronargs - p.pronargdefaults + 1:] as names
      from pg_catalog.pg_proc p
      join pg_catalog.pg_namespace n on n.oid = p.pronamespace and n.nspname = 'api'
     where p.pronargdefaults > 0
     order by p.proname collate "C", p.oid`)
  const constant = rows.filter(({ usual }) => isConstant(usual))
  if (constant.length === 0) return []
  const { rows: found } = await client.query<{ list: unknown[] }>(
    constant
      .map(({ usual }, index) => `select ${index} as at, json_build_array(${usual}) as list`)
      .join(' union all ')
      .concat(' order by at'),
  )
  return constant.flatMap(({ name, names }, index): [string, Record<string, unknown>][] => {
    const values = found[index]?.list ?? []
    const some = names.flatMap((parameter, at) => (values[at] === null ? [] : [[parameter, values[at]] as const]))
    return some.length > 0 ? [[name, Object.fromEntries(some)]] : []
  })
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
  const kinds = Object.entries(of).map(([kind, { comments, defaults, answers, definitions }]) => {
    const refusals = [...comments.keys()]
      .filter((name) => name.startsWith('api.'))
      .flatMap((name) => {
        const found = Object.entries(refusalsIn(comments, name)).map(([status, codes]) => [status, codes.toSorted()])
        return found.length === 0 ? [] : [[name.slice(4), Object.fromEntries(found)] as const]
      })
    const parts = { refusals, defaults, answers, definitions }
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
    control: {
      comments: await readComments(control),
      defaults: await readDefaults(control),
      answers: await answersIn(control),
      definitions: [],
    },
    tenant: {
      comments: await readComments(tenant),
      defaults: await readDefaults(tenant),
      answers: await answersIn(tenant),
      definitions: await definitionsIn(tenant),
    },
  })
