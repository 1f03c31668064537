import type { IncomingHttpHeaders } from 'node:http'

/** What of a representation is sent: both ends included. */
export type Range = { readonly start: number; readonly end: number }

/**
 * The range that a request wants: null for all of it, also where there are several or the header is not understood (RFC 9110, 14.2);
 * `unsatisfiable` where no byte of it exists. Names of units have no case (14.1).
 */
export const rangeOf = (header: string | undefined, size: number): Range | 'unsatisfiable' | null => {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/i.exec(header?.trim() ?? '') ?? []
  if (first === '' && last === '') return null
  if (first === '') {
    const length = Math.min(Number(last), size)
    return length === 0 ? 'unsatisfiable' : { start: size - length, end: size - 1 }
  }
  const start = Number(first)
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1)
  if (last !== '' && Number(last) < start) return null
  return start >= size ? 'unsatisfiable' : { start, end }
}

/** If-Range: a range is meant only of the representation that the client has a part of. A weak tag is none of ours. */
export const isSameFor = ({ 'if-range': header }: IncomingHttpHeaders, etag: string, modifiedAt: Date): boolean => {
  if (header === undefined) return true
  const wanted = String(header).trim()
  if (wanted.startsWith('"')) return wanted === etag
  // a time that is not exactly that of the representation means another one
  return Date.parse(wanted) === Math.floor(modifiedAt.getTime() / 1000) * 1000
}

/** Content-Range of a part that is uploaded: `bytes 0-8388607/20000000`. */
export const partOf = (header: string): (Range & { readonly total: number }) | null => {
  const [, start = '', end = '', total = ''] = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/i.exec(header.trim()) ?? []
  const part = { start: Number(start), end: Number(end), total: Number(total) }
  return start !== '' && part.start <= part.end && part.end < part.total ? part : null
}
