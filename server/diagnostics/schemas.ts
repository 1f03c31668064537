import { z } from 'zod'
import { answer } from '#server/http/interface.ts'
import { jsonSize } from '#server/http/json.ts'
import { JsonObject, Moment, Text, uuidPattern } from '#server/http/schemas.ts'

export const Kind = z.enum(['log', 'error', 'crash', 'performance'], 'must be log, error, crash or performance')
export const Level = z.enum(['debug', 'info', 'warn', 'error', 'fatal'], 'must be debug, info, warn, error or fatal')
export const Status = z.enum(['open', 'resolved', 'ignored'], 'must be open, resolved or ignored')

/** The longest beginning of a text that has so many bytes, ending at a whole character. */
const cut = (text: string, most: number): string => {
  const bytes = Buffer.from(text)
  if (bytes.length <= most) return bytes.toString()
  let end = most
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return bytes.toString('utf8', 0, end)
}

const short = z
  .string()
  .transform((text) => [...text.slice(0, 256)].slice(0, 64).join(''))
  .nullish()

const mostContext = 16_384

export const Report = z.object({
  // what is no uuid is no id of a report, and refuses nothing
  id: z
    .string()
    .transform((id) => (uuidPattern.test(id) ? id.toLowerCase() : null))
    .nullish()
    .catch(null),
  kind: Kind,
  level: Level,
  message: z
    .string()
    .refine((text) => text !== '', 'must not be empty')
    .transform((text) => cut(text, 4096)),
  stack: z
    .string()
    .transform((text) => cut(text, 32_768))
    .nullish(),
  context: JsonObject.refine(
    (value) => jsonSize(value).bytes <= mostContext,
    `must have at most ${mostContext} bytes as JSON`,
  ).nullish(),
  fingerprint: Text(128, 1).nullish(),
  occurred_at: Moment.nullish(),
  app_version: short,
  os_version: short,
  device_model: short,
})

/** A report as lists show it. */
export const Stored = answer('diagnostics_report_json', { kind: Kind, level: Level, context: JsonObject.nullable() })
