import { createHash } from 'node:crypto'
import { refusal } from '#server/errors.ts'
import type { Format, Operation } from '#server/media/image_work.ts'
import { ImageError, type Images } from '#server/media/images.ts'
import type { ObjectLink } from '#server/media/links.ts'
import { type MediaStorage, versionOf } from '#server/media/storage.ts'

/** How an image is changed on its way: part of a signed URL, so that nobody asks for sizes at will. */
export type Variant = {
  readonly w?: number
  readonly h?: number
  readonly fit?: 'cover' | 'contain'
  readonly format?: Format
}

/** One spelling for one variant. */
export const variantText = ({ w, h, fit, format }: Variant): string =>
  [w ?? '', h ?? '', fit ?? 'cover', format ?? 'webp'].join('-')

const operationsOf = (text: string): { operations: readonly Operation[]; format: Format } => {
  const [w = '', h = '', fit = '', format = ''] = text.split('-')
  const size = { ...(w ? { width: Number(w) } : {}), ...(h ? { height: Number(h) } : {}) }
  const converted = { type: 'convert' as const, format: format as Format }
  const stripped = { type: 'strip_metadata' as const }
  const resized = { type: 'resize' as const, ...size, fit: fit as 'cover' | 'contain' }
  return { operations: [...(w || h ? [resized] : []), stripped, converted], format: format as Format }
}

/** So many variants of an asset are kept, and so many bytes of them, as they count against no budget; for the next one others go. */
const mostKept = 32
const mostKeptBytes = 67_108_864

const answerOf = (error: unknown): Error => {
  if (!(error instanceof ImageError)) return error as Error
  if (error.isFinal && error.code !== 'IMAGES_UNAVAILABLE') return refusal(422, error.code, error.message)
  return refusal(503, error.code, error.message, null, { 'Retry-After': '5' })
}

/** Makes each variant once, keeps it beside the object that it was made from, and answers where it is. */
export const createVariants = (storage: MediaStorage, images: Images) => {
  const making = new Map<string, Promise<void>>()
  const make = async (link: ObjectLink, object: string, operations: readonly Operation[], mimeType: string) => {
    await images.change(
      () => storage.read(link),
      operations,
      async (result) => {
        // counted when the variant is made: those that wait have all seen the same number
        const kept = (await storage.derived(link.projectId, link.assetId)).filter(
          (name) => !name.endsWith('.thumbnail.webp'),
        )
        let left = mostKeptBytes - result.size
        for (const [index, old] of kept.entries()) {
          left -= (await storage.stat({ ...link, object: old }))?.size ?? 0
          if (index >= mostKept - 1 || left < 0) await storage.removeObject({ ...link, object: old })
        }
        await storage.write({ ...link, object }, result.file, mimeType)
      },
    )
  }
  /** `admit` is asked before a variant is made that is neither kept nor being made, and throws what it refuses. */
  return async (link: ObjectLink, variant: string, admit?: () => void): Promise<ObjectLink> => {
    const { operations, format } = operationsOf(variant)
    const hash = createHash('sha256').update(variant).digest('hex').slice(0, 16)
    const object = `${versionOf(link.object)}.${hash}.${format}`
    const found = { ...link, object, mimeType: `image/${format}`, variant: null }
    if (await storage.stat(found)) return found
    if (!(await storage.stat(link))) throw refusal(404, 'NOT_FOUND', 'There is no such file.')
    const key = `${link.projectId} ${link.assetId} ${object}`
    if (!making.has(key)) admit?.()
    const work = making.get(key) ?? make(link, object, operations, found.mimeType).finally(() => making.delete(key))
    making.set(key, work)
    await work.catch((error: unknown) => {
      throw answerOf(error)
    })
    return found
  }
}
