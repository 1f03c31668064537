import { plain } from '../../server/plain.ts'
import type { Plan } from './promotion.ts'
import { json, type Terminal } from './terminal.ts'

type Leaf = { readonly path: string; readonly was: unknown; readonly now: unknown }

const isTree = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
const absent = Symbol('absent')

/** Where two values differ, down to the parts that have no parts. */
const leaves = (path: string, was: unknown, now: unknown): Leaf[] => {
  const isSameForm = isTree(was) && isTree(now) && Array.isArray(was) === Array.isArray(now)
  if (!isSameForm) {
    // what is absent has no JSON
    const isSame = was !== absent && now !== absent && json(was ?? null) === json(now ?? null)
    return isSame ? [] : [{ path, was, now }]
  }
  const names = [...new Set([...Object.keys(was), ...Object.keys(now)])]
  return names.flatMap((name) =>
    leaves(
      Array.isArray(now) ? `${path}[${name}]` : `${path}.${plain(name)}`,
      Object.hasOwn(was, name) ? was[name] : absent,
      Object.hasOwn(now, name) ? now[name] : absent,
    ),
  )
}

const shown = (value: unknown) => json(value)

/** A plan for people: what is created, changed and deleted, field by field, and what stands in the way. */
export const showPlan = ({ print, paint }: Terminal, { ops, blocked }: Plan): void => {
  const { green, yellow, red, bold, dim } = paint
  for (const { op, kind, key, diff } of ops) {
    const title = bold(`${plain(kind)}/${plain(key)}`)
    const fields = Object.entries(diff)
    if (op === 'create') {
      print(`${green('+')} ${title}`)
      for (const [field, [, now]] of fields) print(green(`    + ${plain(field)}: ${shown(now)}`))
    } else if (op === 'delete') {
      print(`${red('-')} ${title}`)
      for (const [field, [was]] of fields) print(red(`    - ${plain(field)}: ${shown(was)}`))
    } else {
      print(`${yellow('~')} ${title}`)
      for (const leaf of fields.flatMap(([field, [was, now]]) => leaves(plain(field), was, now))) {
        if (leaf.was === absent) print(green(`    + ${leaf.path}: ${shown(leaf.now)}`))
        else if (leaf.now === absent) print(red(`    - ${leaf.path}: ${shown(leaf.was)}`))
        else print(`    ${yellow('~')} ${leaf.path}: ${red(shown(leaf.was))} -> ${green(shown(leaf.now))}`)
      }
    }
  }
  for (const { kind, key, code, reason } of blocked) {
    print(`${red('!')} ${bold(`${plain(kind)}/${plain(key)}`)} ${plain(reason)} ${dim(`(${plain(code)})`)}`)
  }
}

export const summaryOf = ({ ops, blocked }: Plan): string => {
  const count = (op: string) => ops.filter((one) => one.op === op).length
  const parts = [`${count('create')} to create`, `${count('update')} to change`, `${count('delete')} to delete`]
  return `${parts.join(', ')}${blocked.length > 0 ? `, ${blocked.length} blocked` : ''}`
}
