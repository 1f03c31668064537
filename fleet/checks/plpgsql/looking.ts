import type { Node } from '#fleet/checks/plpgsql/reader.ts'
import { readBody } from '#fleet/checks/plpgsql/statements.ts'

/**
 * Reads the body of a PL/pgSQL function that Postgres has found free of syntax errors, and writes a DO block that runs nothing of it: it has the variables of
 * the function in the same blocks, and has Postgres plan each of its statements and expressions (EXPLAIN), which finds columns, tables and functions that
 * do not exist. Postgres itself looks for them no earlier than when a statement runs for the first time. What cannot be known before is left out.
 */
export type Body = {
  readonly name: string
  readonly source: string
  /** Parameters, and what a trigger function finds: NEW, OLD. */
  readonly variables: readonly { readonly name: string; readonly type: string }[]
  /** Names that exist only while the function runs: transition tables. */
  readonly passing: readonly string[]
}

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`
const literal = (text: string) => `'${text.replaceAll("'", "''")}'`

const caught = ['undefined_column', 'undefined_table', 'undefined_function', 'undefined_object', 'invalid_schema_name']

/** The notice of a problem: where in the body it is, and what Postgres says. */
export const noticeOf = (message: string): { readonly at: number; readonly problem: string } | null => {
  const [, at, problem] = /^trellis (\d+) ([\s\S]*)$/.exec(message) ?? []
  return at && problem ? { at: Number(at), problem } : null
}

/** The DO block. It changes nothing, and a notice says each problem. Throws what cannot be known. */
export const lookingBlock = ({ name, source, variables, passing }: Body): string => {
  const { root, pragmas } = readBody(source)
  const records = recordsOf(root)
  const isPassing = (sql: string) =>
    passing.some((word) => new RegExp(`\\b${word}\\b`, 'i').test(sql)) || /\$\d/.test(sql)
  /** Records whose rows are not known: a statement that reads one is left out by Postgres itself, as it has no value. */
  const write = (node: Node): string => {
    if (node.kind === 'block')
      return [
        node.label ? `<<${node.label}>>` : '',
        node.declared.length > 0 ? `declare ${node.declared.map(({ text }) => text).join('\n')}` : '',
        'begin null;',
        ...node.body.map(write),
        'end;',
      ].join('\n')
    const { sql, at, into = [] } = node
    if (sql === '' || isPassing(sql)) return ''
    const [record, ...others] = into
    const isRow =
      record !== undefined &&
      others.length === 0 &&
      records.get(record) === 1 &&
      !/^(insert|update|delete|merge)/i.test(sql)
    return `begin for trellis_plan in explain (costs off) ${sql}
 loop exit; end loop;${isRow ? ` select * into ${record} from (${sql}\n) trellis_rows where false;` : ''}
exception when ${caught.join(' or ')} then raise notice using message = 'trellis ${at} ' || sqlerrm; when others then null; end;`
  }
  const given = variables.map((one) => `${quoted(one.name)} ${one.type};`)
  const block = [
    ...pragmas,
    `<<${quoted(name)}>>`,
    `declare trellis_plan record; sqlstate text; sqlerrm text; ${given.join(' ')}`,
    'begin',
    write(root),
    'end',
  ].join('\n')
  return `do ${literal(block)}`
}

/** How often each record gets rows. The columns of one that gets them twice may differ. */
const recordsOf = (root: Node): ReadonlyMap<string, number> => {
  const records = new Map<string, number>()
  const collect = (node: Node): void => {
    if (node.kind === 'look') {
      for (const name of node.into ?? []) if (records.has(name)) records.set(name, (records.get(name) ?? 0) + 1)
      return
    }
    for (const { name, text } of node.declared)
      if (/\srecord;$/i.test(text)) records.set(name, records.has(name) ? 2 : 0)
    node.body.forEach(collect)
  }
  collect(root)
  return records
}
