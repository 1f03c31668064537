import { forms } from 'console:forms'
import { useQuery } from '@tanstack/react-query'
import { partOf } from './part_of.ts'
import type { Document } from './schema.ts'

/** The part of the OpenAPI document that has the body of `POST /v1/...`. It is in the bundle, and loaded when the first form of its area needs it. */
export const useDocument = (operation: string): Document | undefined => {
  const part = partOf(operation.split(' ')[1] ?? '')
  return useQuery({
    queryKey: ['forms', part],
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
    queryFn: async () => {
      const load = forms[part]
      if (!load) throw new Error(`The console has no forms of ${part}.`)
      return (await load()).document
    },
  }).data
}
