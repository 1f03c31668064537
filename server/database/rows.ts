import type { TakeRow } from '#server/database/call.ts'

/**
 * Rows as Postgres sends them, written as JSON. Formatting is most of what a page of rows costs Postgres; from the bytes it takes a
 * tenth. What is written is byte for byte what `row_to_json` and `internal.iso` make of the same row (test/collections-rows-json.test.ts).
 */

/** How a value's bytes are read: as JSON text, or as its type. Those of `binary` travel in Postgres's binary format. */
const forms = ['json', 'text', 'boolean', 'bigint', 'uuid', 'timestamptz'] as const
export type Form = (typeof forms)[number]
const binary: ReadonlySet<Form> = new Set<Form>(['uuid', 'timestamptz'])

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
  readonly columns: readonly { readonly before: Buffer; readonly form: Form }[]
  readonly key: Form | null
  readonly missing: string | null
  /** Bytes that a row takes beside its values. */
  readonly frame: number
}

export const readRaw = ({ columns, key, missing = '' }: RawJson): RawRows => {
  const made = columns.map(({ name, form }, index) => {
    if (!forms.includes(form)) throw new Error(`a column of an unknown form: ${form}`)
    return { before: Buffer.from(`${index === 0 ? '{' : ','}${JSON.stringify(name)}:`), form }
  })
  const formatOf = (form: Form | null) => (form && binary.has(form) ? 1 : 0)
  return {
    // status and version are text, the id comes before the key
    formats: [0, 0, 1, formatOf(key), ...columns.map(({ form }) => formatOf(form))],
    columns: made,
    key,
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
}

const scratch = Buffer.allocUnsafeSlow(262_144)

/** Reads at most `limit` rows; one more says that there is a next page. */
export const createRowReader = ({ columns, key, missing, frame }: RawRows, limit: number): RowReader => {
  let status: string | null = null
  let version: string | null = null
  let rows = ''
  let count = 0
  let more = false
  let next: { key: string | null; id: string } | null = null
  let headers: Record<string, string> | null = null

  const take: TakeRow = (bytes, start, end) => {
    let at = start + 2
    const length = () => {
      const found = bytes.readInt32BE(at)
      at += 4
      return found
    }
    const text = () => {
      const size = length()
      if (size < 0) return null
      at += size
      return bytes.toString('latin1', at - size, at)
    }
    const ofStatus = text()
    const ofVersion = text()
    if (count === 0) {
      status = ofStatus
      version = ofVersion
    }
    const idLength = length()
    if (idLength < 0) return
    count += 1
    if (count > limit) {
      more = true
      return
    }
    const idAt = at
    at += idLength
    const keyLength = length()
    const keyAt = at
    if (keyLength > 0) at += keyLength
    if (missing !== null) headers = { ETag: etagOf(bytes, keyAt) }
    else if (count === limit && key !== null) {
      const keyText = keyLength < 0 ? null : keyOf(key, bytes, keyAt, keyLength)
      writeUuid(bytes, idAt, scratch, 0)
      next = { key: keyText, id: scratch.toString('latin1', 0, 36) }
    }
    // a letter may become six
    const most = (end - at) * 6 + frame
    const out = most > scratch.length ? Buffer.allocUnsafe(most) : scratch
    let to = 0
    for (const { before, form } of columns) {
      to = copy(before, 0, before.length, out, to)
      const size = length()
      to = size < 0 ? writeNull(out, to) : write(form, bytes, at, size, out, to)
      if (size > 0) at += size
    }
    out[to] = 125
    const row = out.toString('utf8', 0, to + 1)
    rows = count === 1 ? row : `${rows}, ${row}`
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
      if (missing !== null) return count === 0 ? missing : `{"data":${rows}}`
      return `{"data":[${rows}]}`
    },
    get headers() {
      return headers
    },
    get next() {
      return more ? next : null
    },
  }
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

const word = (text: string) => {
  const letters = Buffer.from(text)
  return (out: Buffer, to: number) => copy(letters, 0, letters.length, out, to)
}
const writeNull = word('null')
const writeTrue = word('true')
const writeFalse = word('false')

const write = (form: Form, bytes: Buffer, at: number, size: number, out: Buffer, to: number): number => {
  switch (form) {
    case 'json':
      return copy(bytes, at, size, out, to)
    case 'text':
      return writeText(bytes, at, size, out, to)
    case 'boolean':
      return bytes[at] === 116 ? writeTrue(out, to) : writeFalse(out, to)
    case 'bigint':
      return writeBigint(bytes, at, size, out, to)
    case 'uuid':
      out[to] = 34
      writeUuid(bytes, at, out, to + 1)
      out[to + 37] = 34
      return to + 38
    case 'timestamptz':
      return writeTime(bytes, at, out, to)
  }
}

/** How a letter of one byte stands in a string of JSON, where not as itself; Postgres escapes the same ones. */
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

/** As internal.bigint_json: a number where a double holds it exactly, else a string. */
const writeBigint = (bytes: Buffer, at: number, size: number, out: Buffer, to: number): number => {
  const isExact = size < 16 || Number.isSafeInteger(Number(bytes.toString('latin1', at, at + size)))
  return isExact ? copy(bytes, at, size, out, to) : writeText(bytes, at, size, out, to)
}

const hex = '0123456789abcdef'
const highDigits = Uint8Array.from({ length: 256 }, (_, byte) => hex.charCodeAt(byte >> 4))
const lowDigits = Uint8Array.from({ length: 256 }, (_, byte) => hex.charCodeAt(byte & 15))

const writeUuid = (bytes: Buffer, at: number, out: Buffer, start: number): void => {
  let to = start
  for (let index = 0; index < 16; index += 1) {
    if (index === 4 || index === 6 || index === 8 || index === 10) out[to++] = 45
    const byte = bytes[at + index] as number
    out[to++] = highDigits[byte] as number
    out[to++] = lowDigits[byte] as number
  }
}

/** Postgres counts microseconds from the year 2000. */
const epoch = 946_684_800_000
const msPerDay = 86_400_000
const isEver = (high: number, low: number) =>
  (high === 0x7fffffff && low === 0xffffffff) || (high === -0x80000000 && low === 0)

/** Milliseconds since 1970, and the microseconds that are left; a double holds a time's microseconds until the year 2285. */
const timeOf = (bytes: Buffer, at: number): { ms: number; micros: number } => {
  const high = bytes.readInt32BE(at)
  if (high > -0x200000 && high < 0x200000) {
    const all = high * 4_294_967_296 + bytes.readUInt32BE(at + 4)
    const ms = Math.floor(all / 1000)
    return { ms: ms + epoch, micros: all - ms * 1000 }
  }
  const all = bytes.readBigInt64BE(at)
  const micros = ((all % 1000n) + 1000n) % 1000n
  return { ms: Number((all - micros) / 1000n) + epoch, micros: Number(micros) }
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

/** Rows of a page are often of one day. */
let lastDays = Number.NaN
let lastDay: Day = { year: 0, text: '' }
const knownDay = (days: number): Day => {
  if (days !== lastDays) {
    lastDay = dayOf(days)
    lastDays = days
  }
  return lastDay
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
  if (isEver(bytes.readInt32BE(at), bytes.readUInt32BE(at + 4))) return writeNull(out, start)
  const { ms } = timeOf(bytes, at)
  const days = Math.floor(ms / msPerDay)
  const ofDay = ms - days * msPerDay
  const { text } = knownDay(days)
  let to = start
  out[to++] = 34
  for (let index = 0; index < text.length; index += 1) out[to++] = text.charCodeAt(index)
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
const keyOf = (form: Form, bytes: Buffer, at: number, size: number): string => {
  if (form !== 'timestamptz') return bytes.toString('utf8', at, at + size)
  const high = bytes.readInt32BE(at)
  if (isEver(high, bytes.readUInt32BE(at + 4))) return high > 0 ? 'infinity' : '-infinity'
  const { ms, micros } = timeOf(bytes, at)
  const days = Math.floor(ms / msPerDay)
  const { year, text } = dayOf(days)
  const ofDay = new Date(ms - days * msPerDay).toISOString().slice(10, -1)
  return `${text}${ofDay}${String(micros).padStart(3, '0')}Z${year <= 0 ? ' BC' : ''}`
}

/** As internal.etag: the microseconds since 1970, in hexadecimal. */
const etagOf = (bytes: Buffer, at: number): string => {
  const { ms, micros } = timeOf(bytes, at)
  return `"${BigInt.asUintN(64, BigInt(ms) * 1000n + BigInt(micros)).toString(16)}"`
}
