import { readFileSync } from 'node:fs'
import type { Place } from '#server/database/database.ts'

type Refusals = Readonly<Record<number, readonly string[]>>
type Interface = Readonly<Record<Place['kind'], Readonly<Record<string, Refusals>>>>

let known: Interface | undefined

/** What a function of `api` refuses, by status, after its comment in the database: `npm run docs` writes the file. */
export const refusalsOf = (kind: Place['kind'], name: string): Refusals => {
  known ??= JSON.parse(readFileSync(new URL('../interface.json', import.meta.url), 'utf8')) as Interface
  return known[kind][name] ?? {}
}

/** Refusals of two sources, by status. */
export const mergeRefusals = (one: Refusals, other: Refusals = {}): Refusals => {
  const merged: Record<number, readonly string[]> = { ...one }
  for (const [status, codes] of Object.entries(other))
    merged[Number(status)] = [...new Set([...(merged[Number(status)] ?? []), ...codes])]
  return merged
}
