import { wordsOf } from '../parts/form/schema.ts'

const known: Readonly<Record<string, string>> = {
  initial_grant: 'At the start',
  regen: 'Came back',
  expiry: 'Expired',
  merge: 'Merged users',
  reversal: 'Reversed',
}
/** A reason of the ledger in words; your own are shown as they are, without underscores. */
export const reasonWords = (reason: string): string => known[reason] ?? wordsOf(reason)
