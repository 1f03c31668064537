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
  readonly quality?: number
}

/** One spelling for one variant. */
export const variantText = ({ w, h, fit, format, quality }: Variant): string =>
  [w ?? '', h ?? '', fit ?? 'cover', format ?? 'webp', ...(quality === undefined ? [] : [quality])].join('-')

const operationsOf = (text: string): { operations: readonly Operation[]; format: Format } => {
  const [w = '', h = '', fit = '', format = '', quality = ''] = text.split('-')
  const size = { ...(w ? { width: Number(w) } : {}), ...(h ? { height: Number(h) } : {}) }
  const converted = {
    type: 'convert' as const,
    format: format as Format,
    ...(quality ? { quality: Number(quality) } : {}),
  }
  const stripped = { type: 'strip_metadata' as const }
  const resized = { type: 'resize' as const, ...size, fit: fit as 'cover' | 'contain' }
  return { operations: [...(w || h ? [resized] : []), stripped, converted], format: format as Format }
}

/** So many variants of an asset are kept, and so many bytes of them, as they count against no budget; for the next one others go. */
const mostKept = 32
const mostKeptBytes = 67_108_864

const answerOf = (error: unknown, retryAfterSeconds = 5): Error => {
  if (!(error instanceof ImageError)) return error as Error
  if (error.isFinal && error.code !== 'IMAGES_UNAVAILABLE') return refusal(422, error.code, error.message)
  return refusal(503, error.code, error.message, null, { 'Retry-After': String(retryAfterSeconds) })
}

/** A variant that could not be made in time is not begun again for so long. */
const rememberedMs = 600_000
const rememberedVariants = 10_000

/** The first parts of a key: `user/<id>`, `bucket/<name>/<first folder>`, or `project`. */
const ownerOf = ({ key }: ObjectLink) => {
  const parts = key.split('/')
  return { user: parts.slice(0, 2), bucket: parts.slice(0, 3) }[parts[0] ?? '']?.join('/') ?? 'project'
}

export type Asking = {
  /** Asked before a variant is made that is neither kept nor being made; throws what it refuses. */
  readonly admit?: () => void
  /** Aborted when the client has gone: a turn that nobody waits for any more is given up. */
  readonly signal?: AbortSignal
}

type Making = { readonly work: Promise<void>; readonly controller: AbortController; waiting: number }

/** Makes each variant once, keeps it beside the object that it was made from, and answers where it is. */
export const createVariants = (storage: MediaStorage, images: Images, now: () => Date) => {
  const making = new Map<string, Making>()
  const late = new Map<string, { readonly until: number; readonly error: ImageError }>()
  const make = async (
    link: ObjectLink,
    object: string,
    operations: readonly Operation[],
    mimeType: string,
    signal: AbortSignal,
  ) => {
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
      { projectId: link.projectId, owner: ownerOf(link) },
      signal,
    )
  }
  const remember = (key: string, error: unknown) => {
    if (!(error instanceof ImageError) || error.code !== 'IMAGE_TIMEOUT') return
    late.delete(key)
    late.set(key, { until: now().getTime() + rememberedMs, error })
    for (const oldest of late.keys()) {
      if (late.size <= rememberedVariants) break
      late.delete(oldest)
    }
  }
  const begin = (key: string, work: (signal: AbortSignal) => Promise<void>): Making => {
    const controller = new AbortController()
    const one: Making = {
      controller,
      waiting: 0,
      work: work(controller.signal)
        .catch((error: unknown) => {
          remember(key, error)
          throw error
        })
        .finally(() => {
          if (making.get(key) === one) making.delete(key)
        }),
    }
    making.set(key, one)
    return one
  }
  return async (link: ObjectLink, variant: string, { admit, signal }: Asking = {}): Promise<ObjectLink> => {
    const { operations, format } = operationsOf(variant)
    const hash = createHash('sha256').update(variant).digest('hex').slice(0, 16)
    const object = `${versionOf(link.object)}.${hash}.${format}`
    const found = { ...link, object, mimeType: `image/${format}`, variant: null }
    if (await storage.stat(found)) return found
    const key = `${link.projectId} ${link.assetId} ${object}`
    const failed = late.get(key)
    if (failed && failed.until > now().getTime())
      throw answerOf(failed.error, Math.ceil((failed.until - now().getTime()) / 1000))
    if (!(await storage.stat(link))) throw refusal(404, 'NOT_FOUND', 'There is no such file.')
    if (!making.has(key)) admit?.()
    const one = making.get(key) ?? begin(key, (gone) => make(link, object, operations, found.mimeType, gone))
    one.waiting += 1
    const leave = () => {
      one.waiting -= 1
      if (one.waiting > 0) return
      // who comes now begins anew
      if (making.get(key) === one) making.delete(key)
      one.controller.abort()
    }
    if (signal?.aborted) leave()
    else signal?.addEventListener('abort', leave, { once: true })
    await one.work
      .catch((error: unknown) => {
        throw answerOf(error)
      })
      .finally(() => signal?.removeEventListener('abort', leave))
    return found
  }
}
