import { z } from 'zod'
import { type Variant, variantText } from '#server/media/variants.ts'
import { invalid } from '#server/rest/auth_shapes.ts'

const sides = 'must be a whole number of 1 to 4096'
const Side = z.coerce.number(sides).int(sides).min(1, sides).max(4096, sides)
const qualities = 'must be a whole number of 20 to 100'

/** How storage-js asks for an image: in a body as numbers, in a query as texts. */
export const Transform = z.strictObject({
  width: Side.optional(),
  height: Side.optional(),
  resize: z.enum(['cover', 'contain'], 'must be cover or contain').optional(),
  quality: z.coerce.number(qualities).int(qualities).min(20, qualities).max(100, qualities).optional(),
  format: z.enum(['origin', 'webp', 'jpeg', 'png', 'avif'], 'must be origin, webp, jpeg, png or avif').optional(),
})

/** An address may have other parameters, such as `download` and `cacheNonce`. */
export const TransformQuery = z.object(Transform.shape)

/** The format that an image has, where it is one that we write. */
const ownFormat = (mimeType: string) => {
  const [, format] = /^image\/(webp|jpeg|png|avif)$/.exec(mimeType) ?? []
  return format as Variant['format']
}

/** The variant of an image that is asked for. */
export const variantFor = (transform: z.output<typeof Transform>, mimeType: string): string => {
  if (!mimeType.startsWith('image/')) throw invalid('transform', 'only images are changed')
  const { width: w, height: h, resize: fit, quality, format: asked } = transform
  const format = asked === 'origin' ? ownFormat(mimeType) : asked
  const wanted = Object.entries({ w, h, fit, quality, format }).filter(([, value]) => value !== undefined)
  return variantText(Object.fromEntries(wanted) as Variant)
}
