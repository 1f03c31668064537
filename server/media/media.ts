import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Config } from '#server/config.ts'
import { createFileStorage, type FileStorage } from '#server/media/files.ts'
import { createImages, type Images } from '#server/media/images.ts'
import { createLinks, type Links, type ObjectLink } from '#server/media/links.ts'
import type { PartStorage } from '#server/media/parts.ts'
import { createS3Storage } from '#server/media/s3.ts'
import type { MediaStorage } from '#server/media/storage.ts'
import { createTickets, type Tickets } from '#server/media/tickets.ts'
import { type Asking, createVariants } from '#server/media/variants.ts'
import type { Secrets } from '#server/secrets.ts'

/** Files of users: where they are, the URLs to them, and what is made of images. */
export type Media = {
  readonly storage: MediaStorage
  /** The storage again, where uploads come to this server; null where they go to the storage itself. */
  readonly uploads: FileStorage | null
  /** Uploads in parts that come to this server, also where the bytes are on another one. */
  readonly parts: PartStorage
  readonly links: Links
  readonly tickets: Tickets
  readonly images: Images
  /** The object that a variant of an image is. */
  variantOf(link: ObjectLink, variant: string, asking?: Asking): Promise<ObjectLink>
  close(): Promise<void>
}

declare module '#server/services.ts' {
  interface Services {
    readonly media: Media
  }
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
  const elsewhere = uploads ? null : createS3Storage(config.STORAGE_URL ?? '', now)
  const storage = (uploads ?? elsewhere) as MediaStorage
  const parts = (uploads ?? elsewhere?.parts) as PartStorage
  const images = createImages({
    folder: join(config.DATA_DIR, 'images'),
    processes: Math.min(2, config.processors),
  })
  return {
    storage,
    uploads,
    parts,
    links: createLinks(secrets, publicUrl, now),
    tickets: createTickets(secrets, now),
    images,
    variantOf: createVariants(storage, images, now),
    close: async () => {
      await images.close()
      await storage.close()
    },
  }
}
