import type { SupabaseClient } from '@supabase/supabase-js'

export type Client = SupabaseClient<any, any, any>
export type Outcome = {
  readonly data?: unknown
  readonly error?: { code?: string; message?: string } | null
  readonly count?: number | null
}

/**
 * What an app calls, and what comes of it: the data, or the code of the error where the REST access does not have it. docs/supabase-js.md is made from
 * the lists of this folder, one file a client, which test/rest/clients and test/supabase run.
 */
export type Case = {
  readonly part: string
  readonly call: string
  readonly run: (client: Client) => PromiseLike<Outcome>
  readonly gives?: unknown
  readonly refuses?: string
  readonly note?: string
}

/** What a row of the table in the guide has. */
export type Shown = Pick<Case, 'part' | 'call' | 'refuses' | 'note'>

/** A signed-in client of its own, with what the calls need: mail that can be read, and another user's id. */
export type World = {
  readonly client: Client
  readonly fresh: () => Client
  readonly email: string
  readonly password: string
  /** A code that was mailed for signing in. */
  readonly code: (email: string) => Promise<string>
  readonly own: () => Promise<string>
}

/** What an app calls beside rows, as `Case` has it. `gives` is part of the data. */
export type PartCase = Pick<Case, 'part' | 'call' | 'gives' | 'refuses' | 'note'> & {
  readonly run: (world: World) => PromiseLike<{ data?: unknown; error?: unknown }>
}
