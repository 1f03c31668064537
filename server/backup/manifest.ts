import { z } from 'zod'
import { StartError } from '#server/errors.ts'

export const manifestName = 'trellis.json'
export const pointName = 'point.json'
export const keyName = 'secrets.key'

/** The first entry of a backup: what it is, and what it takes to restore it. */
export const manifest = z.object({
  format: z.literal(1),
  kind: z.literal('installation'),
  begun_at: z.string(),
  /** Version of the program that made the data. */
  version: z.string(),
  /** Major version of Postgres, and the kind of machine: its files are read by the same alone. */
  postgres: z.number().int(),
  platform: z.string(),
  arch: z.string(),
  system_identifier: z.string(),
  timeline: z.number().int(),
  /** The keys of SECRETS_KEY that the data need, with what proves each. */
  keys: z.array(z.object({ id: z.string(), check: z.string() })),
  /** Whether the generated key is in the backup. */
  has_key: z.boolean(),
  /** Whether media are in the backup; elsewhere they are in the bucket of STORAGE_URL. */
  has_media: z.boolean(),
})
export type Manifest = z.output<typeof manifest>

/** The last entry but one: the moment that is restored. */
export const point = z.object({ lsn: z.string(), at: z.string(), projects: z.number().int() })
export type Point = z.output<typeof point>

export const readManifest = (bytes: Buffer): Manifest => {
  let read: unknown
  try {
    read = JSON.parse(bytes.toString('utf8'))
  } catch {
    throw new StartError('This is no backup of Trellis.')
  }
  const format = (read as { format?: unknown } | null)?.format
  if (typeof format === 'number' && format > 1)
    throw new StartError(`This backup has format ${format}, which a newer Trellis has made: restore it with that one.`)
  const parsed = manifest.safeParse(read)
  if (!parsed.success) throw new StartError('This is no backup of Trellis.')
  return parsed.data
}
