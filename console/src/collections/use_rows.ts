import { useQueries, useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { adminAggregateRows, adminFindRows } from '../../../sdk/src/generated/admin.ts'
import type { Filter } from '../../../sdk/src/generated/schemas.ts'
import { call, queries, type Row } from '../api.ts'
import { useProject } from '../parts/page.tsx'
import type { Collection } from './data.ts'

const pageSize = 100
/** Browsers draw no element that is much higher than this many rows. */
export const mostRows = 900_000

type Question = { readonly filter: object | undefined; readonly order: readonly object[] | undefined }

/** The row that a reference leads to is answered beside it, under the name without `_id`. */
const includeOf = ({ columns }: Collection): readonly string[] =>
  columns.flatMap(({ name, references }) => (references && name.endsWith('_id') ? [name.slice(0, -3)] : []))

/** Rows by their place: only the pages around what is looked at are asked for. */
export const useRowWindow = (collection: Collection, { filter, order }: Question) => {
  const { path } = useProject()
  const { name } = collection
  const [range, setRange] = useState<readonly [number, number]>([0, 0])
  const key = ['rows', path.projectId, name]
  const total = useQuery({
    queryKey: [...key, 'count', filter],
    placeholderData: (before) => before,
    queryFn: async () => {
      const body = { ...(filter ? { filter: filter as Filter } : {}), aggregates: [{ fn: 'count' as const, as: 'n' }] }
      const { data } = await call(adminAggregateRows, { path: { ...path, name }, body })
      return Number((data as readonly Row[])[0]?.['n'] ?? 0)
    },
  })
  const [first, last] = range
  const pages = Array.from({ length: last - first + 1 }, (_, n) => first + n)
  const include = includeOf(collection)
  const results = useQueries({
    queries: pages.map((page) => ({
      queryKey: [...key, 'page', filter, order, include, page],
      queryFn: async () => {
        const body = {
          limit: pageSize,
          offset: page * pageSize,
          ...(filter ? { filter } : {}),
          ...(order ? { order } : {}),
          ...(include.length > 0 ? { include } : {}),
        }
        return (await call(adminFindRows, { path: { ...path, name }, body: body as never })).data as readonly Row[]
      },
    })),
  })
  const byPage = new Map(pages.map((page, n) => [page, results[n]?.data]))
  const versions = results.map(({ dataUpdatedAt }) => dataUpdatedAt).join()
  const rowAt = useMemo(
    () => (index: number) => byPage.get(Math.floor(index / pageSize))?.[index % pageSize],
    [versions, first, last, filter, order],
  )
  const error = total.error ?? results.find((result) => result.error)?.error ?? null
  return {
    total: total.data,
    rowAt,
    error,
    retry: () => Promise.all([total.refetch(), ...results.map((result) => result.refetch())]),
    onRange: (from: number, to: number) => {
      const next = [Math.floor(Math.max(0, from) / pageSize), Math.floor(Math.max(0, to) / pageSize)] as const
      if (next[0] !== first || next[1] !== last) setRange(next)
    },
  }
}

/** Puts a changed row into every page that shows it. */
export const putRow = (projectId: string, name: string, row: Row): void => {
  queries.setQueriesData<unknown>({ queryKey: ['rows', projectId, name, 'page'] }, (page: unknown) =>
    Array.isArray(page) && page.some(({ id }) => id === row['id'])
      ? page.map((one: Row) => (one['id'] === row['id'] ? { ...one, ...row } : one))
      : page,
  )
}
