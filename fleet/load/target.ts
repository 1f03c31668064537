import type { Client } from 'pg'
import { checksumHere, fingerprintAndChecksumHere, type Loaded } from '#fleet/load/checksum.ts'
import type { FunctionText } from '#fleet/load/difference.ts'
import { changedFunctions } from '#fleet/load/difference.ts'
import { type Dependency, dependenciesHere, reading, type State, stateHere } from '#fleet/load/state.ts'

/** What the loader manages in a database, and what depends on its functions. */
export type Managed = { readonly state: State; readonly dependencies: readonly Dependency[] }

/** What a database that holds a program is like, so that others can be brought to it. */
export type Target = Managed & {
  readonly fingerprint: string | null
  readonly counts: string
  /** The SQL that makes a function, and the one that comments on it; null where Postgres cannot say it (an aggregate). */
  readonly texts: ReadonlyMap<string, FunctionText>
}

const managedHere = async (client: Client): Promise<Managed> => ({
  state: await stateHere(client),
  dependencies: await dependenciesHere(client),
})

export const managedOf = (client: Client): Promise<Managed> => reading(client, () => managedHere(client))

const functionTexts = async (client: Client, identities: readonly string[]): Promise<Map<string, FunctionText>> => {
  if (identities.length === 0) return new Map()
  const { rows } = await client.query<FunctionText & { identity: string }>(
    `select f.identity,
            case when p.prokind <> 'a' then pg_get_functiondef(p.oid) end as text,
            format('comment on routine %s is %L', f.identity, obj_description(p.oid, 'pg_proc')) as comment
       from unnest($1::text[]) f (identity)
       join pg_catalog.pg_proc p on p.oid = to_regprocedure(f.identity)`,
    [identities],
  )
  return new Map(rows.map((row) => [row.identity, row]))
}

/**
 * `texts` are those of the functions that differ from what is there before: to write out all of them takes as long as all the rest. `loaded` is given by
 * whoever notes at the same time what is loaded here.
 */
export const readTarget = (
  client: Client,
  before: Managed | Promise<Managed>,
  loaded?: Promise<Loaded>,
): Promise<Target> =>
  reading(client, async () => {
    const { state, dependencies } = await managedHere(client)
    const former = await before
    const texts = await functionTexts(client, changedFunctions(former.state, state, former.dependencies))
    const { fingerprint, checksum } = await (loaded ?? loadedHere(client))
    return { state, dependencies, fingerprint, counts: checksum.counts, texts }
  })

const loadedHere = async (client: Client): Promise<Loaded> => {
  const found = await fingerprintAndChecksumHere(client)
  return { fingerprint: found?.fingerprint ?? null, checksum: found?.checksum ?? (await checksumHere(client)) }
}

/** What a new version changes in databases with the fingerprint `former`: what is in them, and what they are brought to. */
export type Upgrade = { readonly former: string; readonly before: Managed; readonly target: Target }
