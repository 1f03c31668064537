/** What the server and its image processes say to each other. */
export type Operation = {
  readonly type: 'resize' | 'crop' | 'convert' | 'strip_metadata' | 'thumbnail'
  readonly width?: number
  readonly height?: number
  readonly fit?: 'cover' | 'contain'
  readonly format?: Format
  readonly quality?: number
}
export type Format = 'webp' | 'jpeg' | 'png' | 'avif'
export type ImageRequest = {
  readonly input: string
  readonly output: string
  readonly operations: readonly Operation[]
}
export type ImageReply =
  | {
      readonly ok: true
      readonly format: Format
      readonly size: number
      readonly width: number
      readonly height: number
    }
  | { readonly ok: false; readonly code: string; readonly message: string }

/**
 * The signal with which a process ends itself that needs more memory than it may have. An orderly exit would wait for the library's threads, and
 * so for the very work that is to end.
 */
export const outOfMemory = 'SIGUSR2'
