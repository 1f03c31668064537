import type { Client } from 'pg'
import { type Dependency, dependenciesOf, fingerprintOf, reading, type State, stateOf } from '#server/database/state.ts'
import { witnessHere } from '#server/database/witness.ts'

/** What a database that holds a program is like, so that others can be brought to it. */
export type Target = {
  readonly state: State
  readonly dependencies: readonly Dependency[]
  readonly fingerprint: string | null
  readonly counts: string
  /** The SQL that makes each function, and the one that comments on it; null where Postgres cannot say it (an aggregate). */
  readonly texts: ReadonlyMap<string, FunctionText>
}

export type FunctionText = { readonly text: string | null; readonly comment: string }

const functionTexts = (client: Client): Promise<Map<string, FunctionText>> =>
  reading(client, async () => {
    const { rows } = await client.query<FunctionText & { identity: string }>(
      `select p.oid::regprocedure::text as identity,
              case when p.prokind <> 'a' then pg_get_functiondef(p.oid) end as text,
              format('comment on routine %s is %L', p.oid::regprocedure, obj_description(p.oid, 'pg_proc')) as comment
         from pg_catalog.pg_proc p
        where p.pronamespace in (select n.oid from pg_catalog.pg_namespace n where n.nspname in ('app', 'internal', 'api', 'ops'))`,
    )
    return new Map(rows.map((row) => [row.identity, row]))
  })

export const readTarget = async (client: Client): Promise<Target> => ({
  state: await stateOf(client),
  dependencies: await dependenciesOf(client),
  fingerprint: await fingerprintOf(client),
  counts: await reading(client, async () => (await witnessHere(client)).counts),
  texts: await functionTexts(client),
})
