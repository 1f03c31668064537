import { Skeleton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { callAny, type Row } from '../api.ts'
import { useProject } from './page.tsx'

/** An answer about the project, such as statistics: asked for once, however many cells show parts of it. */
export const useAnswer = <T = Row>(
  operation: string,
  path: Readonly<Record<string, string>> = {},
  query: Readonly<Record<string, string | number | undefined>> = {},
  /** Milliseconds after which it is asked for again; 0 for never. */
  every = 0,
) => {
  const { path: project } = useProject()
  return useQuery({
    ...(every ? { refetchInterval: every } : {}),
    queryKey: [operation, { ...project, ...path }, query],
    queryFn: async () => (await callAny(operation, { path: { ...project, ...path }, query })).data as T,
  })
}

/** How many rows a list has. */
export const useTotal = (
  operation: string,
  path: Readonly<Record<string, string>>,
  query: Readonly<Record<string, string>> = {},
) => {
  const { path: project } = useProject()
  return useQuery({
    queryKey: ['total', operation, { ...project, ...path }, query],
    queryFn: async () =>
      (await callAny(operation, { path: { ...project, ...path }, query: { ...query, limit: 1 } })).total ?? 0,
  })
}

/** A figure in a cell of a table, from an answer of its own. */
export const Cell = ({
  answer,
  show,
}: {
  answer: { readonly data: unknown; readonly isPending: boolean }
  show: (data: never) => ReactNode
}) => {
  if (answer.isPending) return <Skeleton h={12} w={40} display="inline-block" />
  return <>{answer.data === undefined || answer.data === null ? '—' : show(answer.data as never)}</>
}
