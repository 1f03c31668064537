/** What the server and its process for source maps say to each other. */

/** The most bytes of a map, and of its upload. */
export const mostMapBytes = 67_108_864
export const mostPackedBytes = 16_777_216

/** A place in a bundle: the line from 1, the column from 0, as maps have them. */
export type Place = { readonly map: string; readonly line: number; readonly column: number }
export type CodeLine = { readonly line: number; readonly text: string }
export type Source = {
  readonly file: string
  /** From 1, both. */
  readonly line: number
  readonly column: number
  readonly code: readonly CodeLine[]
  /** The function around the place, where the map knows it. */
  readonly enclosing: string | null
  /** The name that is written at the place, where the bundle has a shorter one. */
  readonly name: string | null
}

export type Check = { readonly kind: 'check'; readonly bytes: Uint8Array }
export type Trace = {
  readonly kind: 'trace'
  readonly places: readonly Place[]
  /** Maps that the process did not have. */
  readonly maps: Readonly<Record<string, Uint8Array>>
}
export type Request = Check | Trace

export type Checked = { readonly kind: 'checked'; readonly size: number; readonly sha256: string }
export type Traced = { readonly kind: 'traced'; readonly sources: readonly (Source | null)[] }
/** The process does not have these maps, and wants them with the question. */
export type Lacking = { readonly kind: 'lacking'; readonly maps: readonly string[] }
export type Refused = { readonly kind: 'refused'; readonly reason: string }
export type Reply = Checked | Traced | Lacking | Refused
