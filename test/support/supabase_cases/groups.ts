import { admin } from '#test/support/supabase_cases/admin.ts'
import { auth } from '#test/support/supabase_cases/auth.ts'
import type { Case, Client, World } from '#test/support/supabase_cases/case.ts'
import { filterCases } from '#test/support/supabase_cases/filters.ts'
import { named } from '#test/support/supabase_cases/named.ts'
import { reads } from '#test/support/supabase_cases/reads.ts'
import { channels } from '#test/support/supabase_cases/realtime.ts'
import { storage } from '#test/support/supabase_cases/storage.ts'
import { writes } from '#test/support/supabase_cases/writes.ts'

/** Calls of rows, in the order in which they are made: a write sees what the one before it left. */
export const rows: readonly Case<Client>[] = [...filterCases, ...reads, ...writes]

const ofClient = ({ run, ...rest }: Case<Client>): Case<World> => ({
  ...rest,
  ...(run ? { run: ({ client }: World) => run(client) } : {}),
})

/** Of sign-in the table names no refusal that Supabase gives too. */
const judged = (one: Case<World>): Case<World> =>
  one.verdict || !one.refuses ? one : { ...one, verdict: /NOT_FOUND/.test(one.refuses) ? 'not offered' : 'differs' }

/** Every call of the table. Those of rows are made before those of sign-in, which change the user. */
export const all: readonly Case<World>[] = [
  ...rows.map(ofClient),
  ...auth.map(judged),
  ...admin,
  ...storage,
  ...channels,
  ...named,
]

export const parts: readonly string[] = [...new Set(all.map(({ part }) => part))]
