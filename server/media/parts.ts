import type { Readable } from 'node:stream'
import { refusal } from '#server/errors.ts'
import type { UploadLink } from '#server/media/links.ts'

/** Uploads that come in parts, wherever the bytes lie: any server of an installation takes the next part. */
export type PartStorage = {
  /** Stores the bytes from `start` to `end`, both included, and answers up to where bytes have come without a gap. */
  receivePart(upload: UploadLink, source: Readable, start: number, end: number, total: number): Promise<number>
  /** Up to where bytes have come: the size of an upload that came whole. */
  offset(upload: UploadLink): Promise<number>
  /** Removes what has come of an upload that nobody goes on with. */
  discard(upload: UploadLink): Promise<void>
  /** Removes what has come of uploads of the same file before this one. */
  discardFormer(upload: UploadLink): Promise<void>
}

export type Part = {
  readonly name: string
  readonly start: number
  readonly end: number
  readonly total: number
}

const mostParts = 1000

/** A part of an upload is stored beside it, and its name says which one it is. */
export const partName = (version: string, start: number, end: number, total: number): string =>
  `${version}.part-${start}-${end}-${total}`

/** The parts of a version among the names that are stored beside it, by where they begin. */
export const partsAmong = (names: readonly string[], wanted: string): readonly Part[] =>
  names
    .flatMap((name) => {
      const [, version, start, end, total] = /^([0-9a-z]+)\.part-(\d+)-(\d+)-(\d+)$/.exec(name) ?? []
      return version === wanted ? [{ name, start: Number(start), end: Number(end), total: Number(total) }] : []
    })
    .sort((a, b) => a.start - b.start || b.end - a.end)

/** Up to where parts reach without a gap. */
export const reached = (parts: readonly Part[]): number =>
  parts.reduce((to, part) => (part.start <= to ? Math.max(to, part.end + 1) : to), 0)

export const refused = (reason: string) =>
  refusal(400, 'INVALID_INPUT', `The file ${reason}.`, { field: 'body', reason }, { Connection: 'close' })

/** Refuses a part that belongs to another whole than those before it, and one too many. */
export const checkPart = (before: readonly Part[], total: number): void => {
  const [first] = before
  if (first && first.total !== total) throw refused(`has ${first.total} bytes, as its first part said`)
  if (before.length >= mostParts) throw refused(`comes in more than ${mostParts} parts`)
}
