import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Config } from '#server/config.ts'
import { createFileStorage, type FileStorage } from '#server/media/files.ts'
import { createLinks, type Links, type ObjectLink } from '#server/media/links.ts'
import { createS3Storage } from '#server/media/s3.ts'
import type { MediaStorage } from '#server/media/storage.ts'
import type { Secrets } from '#server/secrets.ts'

/** Files of users: where they are, the URLs to them, and what is made of images. */
export type Media = {
  readonly storage: MediaStorage
  /** The storage again, where uploads come to this server; null where they go to the storage itself. */
  readonly uploads: FileStorage | null
  readonly links: Links
  /** The object that a variant of an image is. */
  variantOf(link: ObjectLink, variant: string): Promise<ObjectLink>
  close(): Promise<void>
}

export type MediaOptions = {
  readonly config: Config
  readonly secrets: Secrets
  readonly log: Logger
  readonly publicUrl: () => string
  readonly now: () => Date
}

export const createMedia = ({ config, secrets, publicUrl, now }: MediaOptions): Media => {
  const uploads = config.STORAGE_URL ? null : createFileStorage(join(config.DATA_DIR, 'media'))
  const storage = uploads ?? createS3Storage(config.STORAGE_URL ?? '', now)
  return {
    storage,
    uploads,
    links: createLinks(secrets, publicUrl, now),
    variantOf: async (link) => link,
    close: () => storage.close(),
  }
}
