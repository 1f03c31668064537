import { z } from 'zod'
import { checkJson, jsonSize } from '#server/http/json.ts'
import { isExactNumber, numberText } from '#server/json/lossless_json.ts'
import { isLine } from '#server/lines.ts'
import { addressProblem, canonicalAddress } from '#server/providers/mail_address.ts'

/** The 8-4-4-4-12 hexadecimal form, of any version: what the API calls a uuid. */
export const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export const Uuid = z.string().regex(uuidPattern, 'must be a uuid').meta({ format: 'uuid' })

/**
 * An id for which SQL refuses malformed values with the route's own code. A Postgres text cannot hold U+0000, so it is replaced
 * by another character that no id has, and the id stays malformed.
 */
export const AnyId = z.string().transform((id) => id.replaceAll('\0', '\ufffd'))

/** A credential in a body. Any length is accepted and treated as an unknown credential: the limit of the body bounds it. */
export const Credential = z.string().min(1, 'is required')

/** Times in responses: UTC, milliseconds, Z. */
export const Time = z
  .string()
  .regex(/^\d{4,}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/)
  .meta({ format: 'date-time' })

/** Times in requests, with a zone: ISO 8601 within the range of Postgres, without the year 0 and offsets of 16 hours. */
export const Moment = z.iso
  .datetime({ offset: true, error: 'must be an ISO 8601 time' })
  .refine((text) => !/^0000|[+-](1[6-9]|2\d):\d\d$/.test(text), 'must be an ISO 8601 time')

/** Text of `least` to `most` characters, counted as Postgres and JSON Schema count them: code points, not UTF-16 units. */
export const Text = (
  most: number,
  least = 0,
  reason = `must have ${least ? `${least} to` : 'at most'} ${most} characters`,
) =>
  z
    .string()
    .refine((text) => text.length <= most * 2 && isBetween([...text].length, least, most), reason)
    .meta({ ...(least ? { minLength: least } : {}), maxLength: most })

/** A name, a title or a subject: one line of text. It stands in lists, mails, headers, logs and terminals. */
export const Line = (most: number, least = 0) => Text(most, least).refine(isLine, 'must be one line of text')

const isBetween = (count: number, least: number, most: number) => count >= least && count <= most

/** A mail address, in its canonical form. */
export const Email = z
  .string()
  .overwrite(canonicalAddress)
  .superRefine((email, context) => {
    const problem = addressProblem(email)
    if (problem) context.addIssue({ code: 'custom', message: problem })
  })
  .meta({ format: 'email', maxLength: 254 })

/** Any JSON that is present, null too. The value was parsed from JSON; a recursive schema would be a dangling reference in the document. */
export const Json: z.ZodType = z.unknown().refine((value) => value !== undefined, 'is required')

const isJsonObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isExactNumber(value)

/** A JSON object as it was sent. z.record would make a copy without `__proto__`, which is an ordinary key in JSON. */
export const JsonObject: z.ZodType<Record<string, unknown>> = z
  .custom<Record<string, unknown>>(isJsonObject, 'must be an object')
  .meta({ type: 'object', propertyNames: { type: 'string' }, additionalProperties: {} })
const mostScore = 10n ** 18n
const decimal = /^-?(\d{1,40})(?:\.(\d{1,40}))?$/

/** Whether a number in digits lies within ±10^18, which a double cannot decide near the bounds. */
const isScoreText = (text: string): boolean => {
  const [, whole, part = ''] = decimal.exec(text) ?? []
  if (whole === undefined) return false
  return BigInt(whole) < mostScore || (BigInt(whole) === mostScore && /^0*$/.test(part))
}

const isScore = (value: unknown): boolean => {
  // a shorter string is a number that was sent with the wrong type
  if (typeof value === 'string')
    return value.length <= 82 && value.replace(/\D/g, '').length >= 16 && isScoreText(value)
  if (typeof value === 'number') return Math.abs(value) <= Number(mostScore)
  if (!isExactNumber(value)) return false
  const text = JSON.stringify(value)
  return decimal.test(text) ? isScoreText(text) : Math.abs(Number(text)) < Number(mostScore)
}

/** A score in a request: a number as written (server/json/lossless_json.ts), or a string of 16 digits or more, for clients whose numbers are doubles. */
export const Score = z
  .unknown()
  .refine(isScore, 'must be a number of -10^18 to 10^18, or a string of one that has 16 digits or more')
  .meta({
    type: ['number', 'string'],
    description: 'From -10^18 to 10^18; a string where it has 16 digits or more',
  })

/** A value of Postgres' type numeric in a response: a string if a double does not hold it exactly. */
export const ExactNumber = z.union([z.number(), z.string().regex(/^-?\d+(\.\d+)?$/)])

/** An object of at most this many characters as JSON, with its numbers written out. */
export const SmallJson = (most: number, object = JsonObject) =>
  object.refine((value) => jsonSize(value).characters <= most, `must have at most ${most} characters as JSON`)

/** A number of any length in a request, which SQL receives as it was sent. */
export const SentNumber = z
  .unknown()
  .refine((value) => numberText(value) !== null, 'must be a number')
  .meta({ type: 'number' })

/** JSON in a query parameter, which stays text. */
export const JsonText = (most: number) =>
  z
    .string()
    .max(most, `must have at most ${most} characters`)
    .superRefine((text, context) => {
      const checked = checkJson(Buffer.from(text), 'the text')
      if (checked.kind === 'broken') context.addIssue({ code: 'custom', message: checked.reason })
    })

/** The key of a definition. */
export const Key = z.string().regex(/^[a-z][a-z0-9_-]{0,127}$/, 'must match ^[a-z][a-z0-9_-]{0,127}$')

const whole = /^\d{1,15}$/

/** A page size: too large ones are clamped; zero, negative, fractional and non-numeric ones are refused. */
export const Limit = (most = 200, usual = 50) =>
  z
    .string()
    .regex(whole, 'must be a whole number of at least 1')
    .refine((text) => Number(text) >= 1, 'must be a whole number of at least 1')
    .transform((text) => Math.min(Number(text), most))
    .default(usual)
    .meta({ description: `More than ${most} counts as ${most}.`, type: 'integer', minimum: 1, default: usual })

/** Larger than any list; the sum with a page size is still an int of Postgres. */
const furthest = 2_000_000_000

/** How many rows to skip: too large numbers are clamped, as page sizes are. */
export const Offset = z
  .string()
  .regex(whole, 'must be a whole number of at least 0')
  .transform((text) => Math.min(Number(text), furthest))
  .default(0)
  .meta({ type: 'integer', minimum: 0, default: 0 })

/** Page parameters under the names that list functions take. */
export const Page = { limit: Limit(), offset: Offset }

export const Flag = (usual = false) =>
  z
    .enum(['true', 'false'], 'must be true or false')
    .transform((text) => text === 'true')
    .default(usual)
    .meta({ type: 'boolean', default: usual })

/** A whole number between two bounds, both included. */
export const between = (least: number, most: number) =>
  z.int(`must be a whole number of ${least} to ${most}`).min(least).max(most)

/** `include=user` of a list: each row has its user beside the id, as internal.reply_with_users adds it. */
export const IncludeUser = {
  include: z
    .enum(['user'], 'must be user')
    .optional()
    .describe('`user`: each row has `user`, with id, display_name and avatar_url, or null where there is none'),
}
const UserOfRow = z.strictObject({ id: Uuid, display_name: z.string().nullable(), avatar_url: z.string().nullable() })
export const withUser = <T extends z.ZodRawShape>(row: z.ZodObject<T>) =>
  row.extend({ user: UserOfRow.nullable().optional() })

/** `{data: ...}` */
export const data = <T extends z.ZodType>(schema: T) => z.strictObject({ data: schema })

/** An offset-paged list. */
export const page = <T extends z.ZodType>(schema: T) =>
  z.strictObject({ data: z.array(schema), total: z.int(), offset: z.int(), limit: z.int() })

/** The cursor of the next page: sql/shared/60_cursors.sql writes and reads it. */
export const Cursor = z.string().max(200, 'must be a next_cursor of this list').optional()

/** A cursor-paged list. */
export const cursorPage = <T extends z.ZodType>(schema: T) =>
  z.strictObject({
    data: z.array(schema),
    pagination: z.strictObject({ next_cursor: z.string().nullable(), total: z.int().nullable() }),
  })

export const Deleted = data(z.strictObject({ deleted: z.literal(true) }))

/** A day in a request: of the year 2 or later, as times of events are, so that the days before it have four digits too. */
export const Day = z.iso
  .date('must be a date such as 2026-10-03')
  .refine((text) => text >= '0002', 'must be in the year 2 or later')

/** The value of each day, as internal.days_reply answers it. */
export const DayValues = z.array(z.strictObject({ date: z.string(), value: z.int() }))

/** What a list of days takes and answers: series of these names. */
export const daily = <const Name extends string>(...names: readonly Name[]) => ({
  query: {
    from: Day.optional(),
    to: Day.optional(),
    timezone: z.string().max(100).optional().describe('An IANA name, such as `Europe/Berlin`; UTC where it is absent'),
  },
  stale: true,
  replies: {
    200: data(
      z.strictObject({
        from: z.string(),
        to: z.string(),
        timezone: z.string(),
        series: z.strictObject(
          Object.fromEntries(names.map((name) => [name, DayValues])) as Record<Name, typeof DayValues>,
        ),
      }),
    ),
  },
})

/** 304: the response has no body. */
export const NotModified = z.null()

export const ErrorEnvelope = z.strictObject({
  error: z.strictObject({
    code: z.string().regex(/^[A-Za-z][A-Za-z0-9_]*$/),
    message: z.string(),
    details: z.record(z.string(), z.unknown()).optional(),
  }),
})
