import { isObject } from '../parts/form/schema.ts'

/** A condition of a segment, as the server takes it. */
export type Leaf = Readonly<Record<string, unknown>>

export type Join = 'and' | 'or' | 'none'

export type Group = { readonly join: Join; readonly items: readonly Node[] }

export type Node = Leaf | Group

export const isGroup = (node: Node): node is Group => Array.isArray((node as { items?: unknown }).items)

const nodeOf = (rules: unknown): Node => {
  const part = isObject(rules) ? rules : {}
  for (const join of ['and', 'or'] as const)
    if (Array.isArray(part[join])) return { join, items: (part[join] as unknown[]).map(nodeOf) }
  if ('not' in part) {
    const inner = nodeOf(part['not'])
    return isGroup(inner) && inner.join === 'or' ? { ...inner, join: 'none' } : { join: 'none', items: [inner] }
  }
  return part
}

/** The rules of a segment as a group of conditions; one condition alone is a group of one. */
export const groupOf = (rules: unknown): Group => {
  if (!isObject(rules) || Object.keys(rules).length === 0) return { join: 'and', items: [] }
  const node = nodeOf(rules)
  return isGroup(node) ? node : { join: 'and', items: [node] }
}

const written = (node: Node): unknown => {
  if (!isGroup(node)) return node
  const items = node.items.map(written)
  return node.join === 'none' ? { not: items.length === 1 ? items[0] : { or: items } } : { [node.join]: items }
}

export const rulesOf = (group: Group): Readonly<Record<string, unknown>> => written(group) as Leaf

/** Where a condition of the group stands in its rules: what the server calls it in a refusal and when it explains. */
export const placesOf = (group: Group, before = 'rules'): readonly (readonly [string, Leaf])[] => {
  const inner =
    group.join === 'none'
      ? group.items.length === 1
        ? `${before}.not`
        : `${before}.not.or`
      : `${before}.${group.join}`
  return group.items.flatMap((item, at) => {
    const place = group.join === 'none' && group.items.length === 1 ? inner : `${inner}[${at}]`
    return isGroup(item) ? placesOf(item, place) : [[place, item] as const]
  })
}
