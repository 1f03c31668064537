import { z } from 'zod'
import type { Entry } from '#fleet/backup/archive.ts'
import { StartError } from '#server/errors.ts'

export const manifestName = 'trellis.json'
export const pointName = 'point.json'
export const keyName = 'secrets.key'

const keys = z.array(z.object({ id: z.string(), check: z.string() }))

/** The first entry of a backup: what it is, and what it takes to restore it. */
const installation = z.object({
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
  keys,
  /** Whether the generated key is in the backup. */
  has_key: z.boolean(),
  /** Whether media are in the backup; elsewhere they are in the bucket of STORAGE_URL. */
  has_media: z.boolean(),
})
export type Manifest = z.output<typeof installation>

/** One project, by the statements that make its database and by its rows: of any machine, and of any later major version of Postgres. */
const project = z.object({
  format: z.literal(1),
  kind: z.literal('project'),
  begun_at: z.string(),
  version: z.string(),
  postgres: z.number().int(),
  keys,
  /** The migrations that its database has had: only a program with the same ones can restore it. */
  schema_version: z.string(),
  project: z.looseObject({ id: z.uuid(), name: z.string(), organization_id: z.uuid() }),
})
export type ProjectManifest = z.output<typeof project>

const manifest = z.discriminatedUnion('kind', [installation, project])

/** The last entry but one: the moment that is restored. */
export const point = z.object({ lsn: z.string(), at: z.string(), projects: z.number().int() })
export type Point = z.output<typeof point>
export const projectPoint = z.object({ at: z.string(), tables: z.number().int(), files: z.number().int() })
export type ProjectPoint = z.output<typeof projectPoint>

export const readManifest = (bytes: Buffer): Manifest | ProjectManifest => {
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

export const file = (name: string, text: string): Entry => {
  const body = Buffer.from(text)
  return { name, mode: 0o600, type: 'file', size: body.length, body }
}

export const json = (name: string, value: unknown): Entry => file(name, `${JSON.stringify(value, null, 2)}\n`)
