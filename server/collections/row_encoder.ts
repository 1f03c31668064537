import type { TakeRow } from '#server/database/row_interceptor.ts'
import { pageBytes } from '#server/http/cursors.ts'

/**
 * Encodes rows from Postgres's wire format as JSON. Formatting is most of what a page of rows costs Postgres; from the bytes it takes a
 * tenth. The output is byte for byte that of `row_to_json` and `internal.iso` for the same row (test/collections/rows-json.test.ts).
 */

/** How a value's bytes are read: as JSON text, or as its type. The last three travel in Postgres's binary format. */
const forms = ['json', 'text', 'boolean', 'bigint', 'uuid', 'timestamptz', 'text[]'] as const
type Form = (typeof forms)[number]
const [asText, asBoolean, asBigint, asUuid, asTime, asTexts] = [1, 2, 3, 4, 5, 6]

/** What `internal.collection_compile` says of a statement whose rows come as they are. */
export type RawJson = {
  readonly columns: readonly { readonly name: string; readonly form: Form }[]
  /** The value that a next page begins after, or that an ETag is made of. */
  readonly key: Form | null
  /** The envelope where there is no row; without it the rows are a list. */
  readonly missing?: string
}

export type RawRows = {
  readonly formats: readonly number[]
  readonly columns: readonly { readonly before: Buffer; readonly form: number }[]
  readonly isKeyTime: boolean
  readonly missing: string | null
  /** Bytes that a row takes beside its values. */
  readonly frame: number
}

export const readRaw = ({ columns, key, missing = '' }: RawJson): RawRows => {
  const made = columns.map(({ name, form }, index) => {
    if (!forms.includes(form)) throw new Error(`a column of an unknown form: ${form}`)
    return { before: Buffer.from(`${index === 0 ? '{' : ','}${JSON.stringify(name)}:`), form: forms.indexOf(form) }
  })
  const formatOf = (form: Form | null) => (form && forms.indexOf(form) >= asUuid ? 1 : 0)
  return {
    // status and version are text, the id comes before the key
    formats: [0, 0, 1, formatOf(key), ...columns.map(({ form }) => formatOf(form))],
    columns: made,
    isKeyTime: key === 'timestamptz',
    missing: missing || null,
    frame: made.reduce((sum, { before }) => sum + before.length + 50, 50),
  }
}

/** The rows of one answer, as they come in. */
export type RowReader = {
  readonly take: TakeRow
  readonly status: string | null
  readonly version: string | null
  /** The whole envelope. */
  body(): string
  readonly headers: Record<string, string> | null
  /** Where the next page begins; null where there is none. */
  readonly next: { readonly key: string | null; readonly id: string } | null
  /** Whether rows are left out because a page has no room for them: what still comes is of no use. */
  readonly isFull: boolean
  /** How many rows are in the answer. */
  readonly shown: number
}

/** Where answers are put together, many at a time: each takes one and gives it back with its last row. */
const spare: Buffer[] = []
const ofSpare = 131_072
const takeBuffer = (least: number): Buffer =>
  least > ofSpare ? Buffer.allocUnsafeSlow(least) : (spare.pop() ?? Buffer.allocUnsafeSlow(ofSpare))
const releaseBuffer = (buffer: Buffer): void => {
  if (buffer.length === ofSpare && spare.length < 16) spare.push(buffer)
}

const int32 = (bytes: Buffer, at: number): number =>
  ((bytes[at] as number) << 24) |
  ((bytes[at + 1] as number) << 16) |
  ((bytes[at + 2] as number) << 8) |
  (bytes[at + 3] as number)

/** The offset of the next value's length. */
const after = (bytes: Buffer, at: number): number => at + 4 + Math.max(0, int32(bytes, at))

const textAt = (bytes: Buffer, at: number): string | null => {
  const size = int32(bytes, at)
  return size < 0 ? null : bytes.toString('utf8', at + 4, at + 4 + size)
}

/**
 * Reads at most `limit` rows, and of these as many as 8 MB hold; one row more says that there is a next page. The first is read whatever
 * it has, but where `boundsFirst`: then an answer may be full with no row in it.
 */
export const createRowReader = (raw: RawRows, limit: number, boundsFirst = false): RowReader => {
  const { missing } = raw
  let status: string | null = null
  let version: string | null = null
  let count = 0
  let hasMore = false
  let isFull = false
  // the last row that is in the answer: the bytes that it came in, and the offsets of its id and its key in them
  let lastBytes: Buffer | null = null
  let lastId = 0
  let lastKey = 0
  let written = 0
  let headers: Record<string, string> | null = null
  let rows = ''
  let out: Buffer | null = null
  let to = 0

  const flush = () => {
    if (!out) return
    rows += out.toString('utf8', 0, to)
    releaseBuffer(out)
    out = null
    to = 0
  }

  const take: TakeRow = (bytes, start, end) => {
    if (isFull) return
    const versionAt = after(bytes, start + 2)
    const idAt = after(bytes, versionAt)
    if (status === null) {
      status = textAt(bytes, start + 2)
      version = textAt(bytes, versionAt)
    }
    // no row, or one that only says that there are more
    if (int32(bytes, idAt) < 0) return
    if (count === limit) {
      hasMore = true
      return
    }
    const keyAt = after(bytes, idAt)
    if (missing !== null) headers = { ETag: etagOf(bytes, keyAt + 4) }
    if (end - start > pageBytes && (count > 0 || boundsFirst)) {
      isFull = true
      return
    }
    // a letter may become six
    const most = (end - start) * 6 + raw.frame
    if (out && to + most > out.length) flush()
    out ??= takeBuffer(most)
    const began = to
    if (count > 0) {
      out[to++] = 44
      out[to++] = 32
    }
    to = writeRow(raw, bytes, after(bytes, keyAt), out, to)
    if (count > 0 && written + to - began > pageBytes) {
      to = began
      isFull = true
      return
    }
    written += to - began
    count += 1
    lastBytes = bytes
    lastId = idAt
    lastKey = keyAt
  }

  return {
    take,
    get status() {
      return status
    },
    get version() {
      return version
    },
    body() {
      flush()
      if (missing !== null) return count === 0 ? missing : `{"data":${rows}}`
      return `{"data":[${rows}]}`
    },
    get headers() {
      return headers
    },
    get next() {
      if (!lastBytes || !(hasMore || isFull)) return null
      return { key: keyOf(raw, lastBytes, lastKey), id: uuidOf(lastBytes, lastId + 4) }
    },
    get isFull() {
      return isFull
    },
    get shown() {
      return count
    },
  }
}

/** A row's values, from `start` on, as a JSON object. */
const writeRow = ({ columns }: RawRows, bytes: Buffer, start: number, out: Buffer, began: number): number => {
  let at = start
  let to = began
  for (let index = 0; index < columns.length; index += 1) {
    const { before, form } = columns[index] as (typeof columns)[number]
    to = copy(before, 0, before.length, out, to)
    const size = int32(bytes, at)
    at += 4
    if (size < 0) {
      to = copy(nothing, 0, 4, out, to)
      continue
    }
    if (form === asText) to = writeText(bytes, at, size, out, to)
    else if (form === asTime) to = writeTime(bytes, at, out, to)
    else if (form === asUuid) to = writeUuid(bytes, at, out, to)
    else if (form === asTexts) to = writeTexts(bytes, at, out, to)
    else if (form === asBoolean) to = writeBoolean(bytes, at, out, to)
    else if (form === asBigint) to = writeBigint(bytes, at, size, out, to)
    else to = copy(bytes, at, size, out, to)
    at += size
  }
  out[to] = 125
  return to + 1
}

/** Loops beat a call into C++ for what is short. */
const copy = (from: Buffer, start: number, size: number, out: Buffer, to: number): number => {
  if (size > 64) {
    from.copy(out, to, start, start + size)
    return to + size
  }
  for (let index = 0; index < size; index += 1) out[to + index] = from[start + index] as number
  return to + size
}

const nothing = Buffer.from('null')
const [yes, no] = [Buffer.from('true'), Buffer.from('false')]
const writeBoolean = (bytes: Buffer, at: number, out: Buffer, to: number): number =>
  bytes[at] === 116 ? copy(yes, 0, 4, out, to) : copy(no, 0, 5, out, to)

/** The JSON escape of each character of one byte that needs one; Postgres escapes the same ones. */
const escapes: readonly (Buffer | undefined)[] = Array.from({ length: 256 }, (_, code) =>
  code < 32 || code === 34 || code === 92
    ? Buffer.from(JSON.stringify(String.fromCharCode(code)).slice(1, -1))
    : undefined,
)
const isEscaped = Uint8Array.from(escapes, (escaped) => (escaped ? 1 : 0))

const writeText = (bytes: Buffer, at: number, size: number, out: Buffer, start: number): number => {
  let to = start
  out[to++] = 34
  for (let index = at; index < at + size; index += 1) {
    const code = bytes[index] as number
    if (isEscaped[code] === 0) out[to++] = code
    else {
      const escaped = escapes[code] as Buffer
      to = copy(escaped, 0, escaped.length, out, to)
    }
  }
  out[to++] = 34
  return to
}

/** The binary format of an array: how many dimensions, two words, length and first index of each, then its elements. */
const writeTexts = (bytes: Buffer, at: number, out: Buffer, start: number): number => {
  const dimensions = int32(bytes, at)
  let from = at + 12 + dimensions * 8
  let to = start
  const list = (dimension: number) => {
    out[to++] = 91
    const length = dimension < dimensions ? int32(bytes, at + 12 + dimension * 8) : 0
    for (let index = 0; index < length; index += 1) {
      if (index > 0) out[to++] = 44
      if (dimension < dimensions - 1) {
        list(dimension + 1)
        continue
      }
      const size = int32(bytes, from)
      from += 4
      to = size < 0 ? copy(nothing, 0, 4, out, to) : writeText(bytes, from, size, out, to)
      if (size > 0) from += size
    }
    out[to++] = 93
  }
  list(0)
  return to
}

/** As internal.bigint_json: a number where a double holds it exactly, else a string. */
const writeBigint = (bytes: Buffer, at: number, size: number, out: Buffer, to: number): number => {
  const isExact = size < 16 || Number.isSafeInteger(Number(bytes.toString('latin1', at, at + size)))
  return isExact ? copy(bytes, at, size, out, to) : writeText(bytes, at, size, out, to)
}

const hex = '0123456789abcdef'
const highDigits = Uint8Array.from({ length: 256 }, (_, byte) => hex.charCodeAt(byte >> 4))
const lowDigits = Uint8Array.from({ length: 256 }, (_, byte) => hex.charCodeAt(byte & 15))

const writeUuid = (bytes: Buffer, at: number, out: Buffer, start: number): number => {
  let to = start
  out[to++] = 34
  for (let index = 0; index < 16; index += 1) {
    if (index === 4 || index === 6 || index === 8 || index === 10) out[to++] = 45
    const byte = bytes[at + index] as number
    out[to++] = highDigits[byte] as number
    out[to++] = lowDigits[byte] as number
  }
  out[to++] = 34
  return to
}

const uuidOf = (bytes: Buffer, at: number): string =>
  bytes.toString('hex', at, at + 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')

/** Postgres counts microseconds from the year 2000. */
const epochDays = 10_957
const epochMicros = 946_684_800_000_000n
const msPerDay = 86_400_000
const isEver = (bytes: Buffer, at: number): boolean => {
  const high = int32(bytes, at)
  const low = int32(bytes, at + 4)
  return (high === 0x7fffffff && low === -1) || (high === -0x80000000 && low === 0)
}

type Moment = { readonly days: number; readonly ms: number; readonly micros: number }
const microsPerDay = 86_400_000_000n

/** A time as days since 1970, milliseconds of its day and microseconds of its millisecond. */
const momentOf = (bytes: Buffer, at: number): Moment => {
  const all = bytes.readBigInt64BE(at)
  const ofDay = ((all % microsPerDay) + microsPerDay) % microsPerDay
  return {
    days: Number((all - ofDay) / microsPerDay) + epochDays,
    ms: Number(ofDay / 1000n),
    micros: Number(ofDay % 1000n),
  }
}

type Day = { readonly year: number; readonly text: string }

/** The day that so many days after 1970-01-01 is (Hinnant's civil_from_days): JavaScript's Date ends before Postgres's does. */
const dayOf = (days: number): Day => {
  const z = days + 719_468
  const era = Math.floor(z / 146_097)
  const ofEra = z - era * 146_097
  const yearOfEra = Math.floor(
    (ofEra - Math.floor(ofEra / 1460) + Math.floor(ofEra / 36_524) - Math.floor(ofEra / 146_096)) / 365,
  )
  const ofYear = ofEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const march = Math.floor((5 * ofYear + 2) / 153)
  const day = ofYear - Math.floor((153 * march + 2) / 5) + 1
  const month = march < 10 ? march + 3 : march - 9
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  // there is no year 0, and to_char does not say BC
  const said = year <= 0 ? 1 - year : year
  return {
    year,
    text: `${String(said).padStart(4, '0')}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`,
  }
}

/** The days that were written last, ten letters each: the times of a page are often of a few. */
const knownDays = new Int32Array(256).fill(-0x80000000)
const knownTexts = Buffer.alloc(256 * 10)

const writeDay = (days: number, out: Buffer, to: number): number => {
  const place = days & 255
  if (knownDays[place] !== days) {
    const { text } = dayOf(days)
    if (text.length !== 10) return to + out.write(text, to, 'latin1')
    knownDays[place] = days
    knownTexts.write(text, place * 10, 'latin1')
  }
  return copy(knownTexts, place * 10, 10, out, to)
}

const digits = (value: number, count: number, out: Buffer, to: number): number => {
  let rest = value
  for (let index = count - 1; index >= 0; index -= 1) {
    const tens = (rest / 10) | 0
    out[to + index] = 48 + rest - tens * 10
    rest = tens
  }
  return to + count
}

/** As internal.iso: UTC, cut to milliseconds; null for infinity. */
const writeTime = (bytes: Buffer, at: number, out: Buffer, start: number): number => {
  if (isEver(bytes, at)) return copy(nothing, 0, 4, out, start)
  const high = int32(bytes, at)
  let days: number
  let ofDay: number
  // a double holds a time's microseconds until the year 2285
  if (high > -0x200000 && high < 0x200000) {
    const ms = Math.floor((high * 4_294_967_296 + (int32(bytes, at + 4) >>> 0)) / 1000)
    days = Math.floor(ms / msPerDay)
    ofDay = ms - days * msPerDay
    days += epochDays
  } else {
    const moment = momentOf(bytes, at)
    days = moment.days
    ofDay = moment.ms
  }
  out[start] = 34
  let to = writeDay(days, out, start + 1)
  out[to++] = 84
  to = digits((ofDay / 3_600_000) | 0, 2, out, to)
  out[to++] = 58
  to = digits(((ofDay / 60_000) | 0) % 60, 2, out, to)
  out[to++] = 58
  to = digits(((ofDay / 1000) | 0) % 60, 2, out, to)
  out[to++] = 46
  to = digits(ofDay % 1000, 3, out, to)
  out[to++] = 90
  out[to++] = 34
  return to
}

/** A key as a parameter of the next page takes it: a time with all its microseconds. */
const keyOf = ({ isKeyTime }: RawRows, bytes: Buffer, lengthAt: number): string | null => {
  if (!isKeyTime || int32(bytes, lengthAt) < 0) return textAt(bytes, lengthAt)
  const at = lengthAt + 4
  if (isEver(bytes, at)) return int32(bytes, at) > 0 ? 'infinity' : '-infinity'
  const { days, ms, micros } = momentOf(bytes, at)
  const { year, text } = dayOf(days)
  const ofDay = new Date(ms).toISOString().slice(10, -1)
  return `${text}${ofDay}${String(micros).padStart(3, '0')}Z${year <= 0 ? ' BC' : ''}`
}

/** As internal.etag: the microseconds since 1970, in hexadecimal. */
const etagOf = (bytes: Buffer, at: number): string =>
  `"${BigInt.asUintN(64, bytes.readBigInt64BE(at) + epochMicros).toString(16)}"`
