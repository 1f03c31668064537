import { useState } from 'react'

/** Queries that this browser keeps, for each project: the last that were run, and those with a name. */
type Ran = { readonly sql: string; readonly at: string }
export type Named = { readonly name: string; readonly sql: string }

const mostRan = 20

const read = <T>(key: string): readonly T[] => {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(key) ?? '[]')
    return Array.isArray(found) ? found : []
  } catch {
    // what somebody else wrote there, or a browser that keeps nothing
    return []
  }
}
const write = (key: string, value: unknown): void => {
  try {
    localStorage.setItem(key, JSON.stringify(value))
  } catch {
    // it is full, or not allowed: the page works without
  }
}

const useKept = <T>(key: string) => {
  const [kept, set] = useState(() => read<T>(key))
  return [
    kept,
    (next: readonly T[]) => {
      set(next)
      write(key, next)
    },
  ] as const
}

export const useQueries = (projectId: string) => {
  const [ran, setRan] = useKept<Ran>(`trellis.sql.${projectId}.ran`)
  const [named, setNamed] = useKept<Named>(`trellis.sql.${projectId}.named`)
  return {
    ran,
    named,
    remember: (sql: string) =>
      setRan([{ sql, at: new Date().toISOString() }, ...ran.filter((one) => one.sql !== sql)].slice(0, mostRan)),
    forgetAll: () => setRan([]),
    /** Under a name that is taken the new one replaces the old one. */
    save: (name: string, sql: string) =>
      setNamed(
        [...named.filter((one) => one.name !== name), { name, sql }].sort((a, b) => a.name.localeCompare(b.name)),
      ),
    remove: (name: string) => setNamed(named.filter((one) => one.name !== name)),
  }
}
export type Queries = ReturnType<typeof useQueries>
