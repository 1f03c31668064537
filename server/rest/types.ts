import type { Place } from '#server/database/cluster.ts'
import type { Postgrest } from '#server/rest/process.ts'
import type { Queue } from '#server/rest/queue.ts'
import type { RestTokens } from '#server/rest/tokens.ts'

/** The use of a project's PostgREST for one request. Released when the response has been sent. */
export type Lease = Pick<Postgrest, 'http' | 'pid' | 'loads'> &
  RestTokens & {
    /** After an answer that a change of a collection may have made wrong: see `Notices`. `seen`: how often the schema was read before. */
    readAgain(seen: number): Promise<boolean>
    /** A turn of a request without a session: these take half of the connections at most, so that users find one. */
    readonly strangersTurn: Queue
    release(): void
  }

/** The processes of PostgREST of one server process: one for each project that uses its REST access. */
export type RestProcesses = {
  /** Starts the project's PostgREST if it does not run. Refuses 503 REST_UNAVAILABLE, REST_BUSY. */
  lease(projectId: string, place: Place, organizationId?: string): Promise<Lease>
  /**
   * `project:<id>` and `tenant:<id>`: what runs for it ends once it serves no request, and its sockets are checked. `collection:<project id>/<name>`:
   * PostgREST will read the schema again.
   */
  drop(changed: string): void
  /** A socket of the project is open: `check` is called when the project may have changed. Returns what ends that. */
  watch(projectId: string, check: () => void): () => void
  /** Changes may have been missed: every socket is checked. */
  checkAll(): void
  /** Projects whose PostgREST runs, with its process. */
  running(): ReadonlyMap<string, number>
  stop(): Promise<void>
}

declare module '#server/services.ts' {
  interface Services {
    readonly rest: RestProcesses
  }
}
