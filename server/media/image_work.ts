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

/** Exit code of a process that needed more memory than it may have. */
export const outOfMemory = 70
