import { queryOptions, useQuery } from '@tanstack/react-query'
import { getBilling } from '../../../sdk/src/generated/admin.ts'
import type { Billing } from '../../../sdk/src/generated/schemas.ts'
import { call } from '../api.ts'
import { useProject } from './page.tsx'

/** The plan of a project, what it used this month, and its spending limit. */
export const billingOf = (projectId: string) =>
  queryOptions({
    queryKey: ['billing', projectId],
    queryFn: async () => (await call(getBilling, { path: { projectId } })).data as Billing,
  })
export const useBilling = () => useQuery(billingOf(useProject().projectId))
