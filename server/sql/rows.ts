import type { TakeRow } from '#server/database/row_interceptor.ts'
import type { Field } from '#server/sql/describe.ts'
import { lengthOfValues } from '#server/sql/statement.ts'

export type Value = string | number | boolean | null

/** The rows of an answer together, as JSON. */
export const mostBytes = 1_000_000

/** int2, int4, float4, float8: a double holds them, as long as they are numbers. */
const numbers = new Set([21, 23, 700, 701])
const boolean = 16

/** A value as JSON: what a double or a boolean holds is one, all else is Postgres's text. */
const asJson = (type: number, text: string): Value => {
  if (type === boolean) return text === 'true'
  if (!numbers.has(type)) return text
  const number = Number(text)
  return Number.isFinite(number) ? number : text
}

/** Collects rows as their bytes come, up to the bounds; what comes after them is dropped as it comes. */
export const collectRows = (fields: readonly Field[], most: number) => {
  const length = lengthOfValues(fields.length)
  const rows: Value[][] = []
  let bytes = 0
  let isCut = false
  let isFull = false

  const read = (buffer: Buffer, start: number): Value[] => {
    let at = start + 2
    return fields.map(({ dataTypeID }) => {
      const size = buffer.readInt32BE(at)
      at += 4
      if (size < 0) return null
      const text = buffer.toString('utf8', at, at + size)
      at += size
      // code points are what left() counts; most texts are too short to have so many
      if (text.length <= length) return asJson(dataTypeID, text)
      const points = [...text]
      if (points.length <= length) return text
      isCut = true
      return `${points.slice(0, length).join('')}…`
    })
  }
  const take: TakeRow = (buffer, start) => {
    if (isFull) return
    if (rows.length === most) {
      isFull = true
      isCut = true
      return
    }
    const row = read(buffer, start)
    bytes += Buffer.byteLength(JSON.stringify(row)) + 1
    if (bytes > mostBytes) {
      isFull = true
      isCut = true
    } else rows.push(row)
  }
  return { take, rows, isFull: () => isFull, isCut: () => isCut }
}
