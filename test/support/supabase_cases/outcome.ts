import { isDeepStrictEqual } from 'node:util'

type Outcome = { readonly data?: unknown; readonly error?: unknown } | null | undefined
type Wanted = { readonly gives?: unknown; readonly refuses?: string | undefined }

/** Whether a value has all that is wanted of it: of objects a part, of lists as many. */
const has = (value: unknown, wanted: unknown): boolean => {
  if (typeof wanted !== 'object' || wanted === null) return isDeepStrictEqual(value, wanted)
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(wanted))
    return Array.isArray(value) && value.length === wanted.length && wanted.every((one, n) => has(value[n], one))
  return Object.entries(wanted).every(([name, one]) => has((value as Record<string, unknown>)[name], one))
}

/** What of an outcome is not as the table says; null where nothing is. */
export const matches = ({ gives, refuses }: Wanted, outcome: Outcome): string | null => {
  const error = (outcome?.error ?? null) as { code?: string; message?: string } | null
  const told = error ? (error.code ?? error.message ?? 'an error') : null
  if (refuses !== undefined) {
    const isMeant = told !== null && refuses.split('|').some((code) => told === code || told.startsWith(`${code}`))
    return isMeant ? null : `refused with ${told ?? 'nothing'} in place of ${refuses}`
  }
  if (told !== null) return `refused with ${told}`
  return gives === undefined || has(outcome?.data, gives) ? null : `gives ${JSON.stringify(outcome?.data)}`
}
