import type { SupabaseClient } from '@supabase/supabase-js'

export type Client = SupabaseClient<any, any, any>

type Outcome = {
  readonly data?: unknown
  readonly error?: unknown
  readonly count?: number | null
}

/**
 * A call of an app, and what comes of it: the data, or the code of a refusal. The table of docs/supabase-js.md is made from these, tests make them with the
 * client of the lockfile, and `npm run proof:supabase` with any published one.
 */
export type Case<World> = {
  readonly part: string
  readonly call: string
  /** Without it the call is named alone: the client does it by itself, or asks for what is not offered. */
  readonly run?: (world: World) => PromiseLike<Outcome>
  readonly gives?: unknown
  /** Codes, joined by `|`. Without a verdict it is a refusal that Supabase gives too. */
  readonly refuses?: string
  readonly verdict?: 'differs' | 'not offered'
  readonly note?: string
}

/** A user who has signed in, with what calls need: mail that can be read, somebody else, a place for files. */
export type World = {
  readonly client: Client
  /** A client on which nobody has signed in. The project has GitHub as a provider of `githubProvider`, and the address of `githubRedirects`. */
  readonly fresh: (flowType?: 'implicit' | 'pkce') => Client
  readonly email: string
  readonly password: string
  /** A code that was mailed for signing in. */
  readonly code: (email: string) => Promise<string>
  readonly own: () => Promise<string>
  /** The client of another user. */
  readonly peer: () => Promise<Client>
  /** The server key's client. */
  readonly server: Client
  /** A file of a public bucket: `hello`. */
  readonly publicFile: () => Promise<{ readonly name: string; readonly path: string }>
}

/** A call beside rows. */
export type PartCase = Case<World>

/** What the project's sign-in by redirect is set up with. */
export const githubProvider = { client_id: 'a-client', client_secret: 'a secret' }
export const githubRedirects = { addresses: ['https://app.example.com/signed-in'] }
