/**
 * An operation of the API: its method and path, with the types of what is sent and answered. At run time it is a string, so that a bundle
 * contains the operations that an app imports, and no others.
 */
export type Operation<Input, Reply> = string & { readonly __types: { readonly input: Input; readonly reply: Reply } }

/** The input of an operation without parameters and body. */
// biome-ignore lint/complexity/noBannedTypes: an intersection with it adds nothing
export type Nothing = {}

/** A body that is not JSON: text, bytes, a Blob, a stream, whatever `fetch` of the platform takes. */
export type RawBody = unknown

/** An answer that is not JSON, as `fetch` gives it: read it with `text()`, or on platforms that have it from `body`. */
export type RawReply = {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body?: unknown
  text(): Promise<string>
}
