import { stat } from 'node:fs/promises'
import type { Sharp } from 'sharp'
import {
  type Format,
  type ImageReply,
  type ImageRequest,
  type Operation,
  outOfMemory,
} from '#server/media/image_work.ts'

/**
 * A process that changes images, one after the other, for server/media/images.ts. It gets paths and operations over IPC, has no secrets in
 * its environment, and may die at any moment: by its own limit of memory, or by its parent's limit of time. A program: nothing imports it.
 */

const mostPixels = 50_000_000
const mostMemory = 1_000_000_000

type SharpModule = typeof import('sharp').default

const formats: readonly string[] = ['webp', 'jpeg', 'png', 'avif']

/** Decoders of the formats that are wanted, and no others: no vector graphics, no documents. */
const limited = (sharp: SharpModule): SharpModule => {
  sharp.cache(false)
  sharp.concurrency(1)
  sharp.block({ operation: ['VipsForeignLoad'] })
  sharp.unblock({
    operation: ['Jpeg', 'Png', 'Webp', 'Heif', 'Nsgif', 'Tiff'].map((name) => `VipsForeignLoad${name}File`),
  })
  return sharp
}

const sized = (image: Sharp, { type, width, height, fit = 'cover' }: Operation): Sharp => {
  const size = { ...(width ? { width } : {}), ...(height ? { height } : {}) }
  if (type === 'thumbnail')
    return image.resize({ width: 512, height: 512, ...size, fit: 'inside', withoutEnlargement: true })
  return width && height
    ? image.resize({ ...size, fit, background: { r: 0, g: 0, b: 0, alpha: 0 } })
    : image.resize({ ...size, fit: 'inside' })
}

/** The middle of the image, or all of a side that is shorter. */
const cropped = async (image: Sharp, operation: Operation, sharp: SharpModule): Promise<Sharp> => {
  const { data, info } = await image.raw().toBuffer({ resolveWithObject: true })
  const [width, height] = [
    Math.min(operation.width ?? info.width, info.width),
    Math.min(operation.height ?? info.height, info.height),
  ]
  const [left, top] = [Math.floor((info.width - width) / 2), Math.floor((info.height - height) / 2)]
  return sharp(data, { raw: info }).extract({ left, top, width, height })
}

/** A pipeline has one size: before another, the pixels of the first are made. */
const settled = async (image: Sharp, sharp: SharpModule): Promise<Sharp> => {
  const { data, info } = await image.raw().toBuffer({ resolveWithObject: true })
  return sharp(data, { raw: info })
}

/** AVIF of many pixels takes half a minute of computing with the usual effort, and a few seconds with the least; the file is larger. */
const manyPixels = 4_000_000
const largest = (operations: readonly Operation[], width = 0, height = 0): number => {
  const sizes = operations.flatMap(({ width, height }) =>
    width || height ? [(width ?? height ?? 0) * (height ?? width ?? 0)] : [],
  )
  return sizes.length > 0 ? Math.max(...sizes) : width * height
}

const change = async (sharp: SharpModule, { input, output, operations }: ImageRequest): Promise<ImageReply> => {
  const source = sharp(input, { limitInputPixels: mostPixels, failOn: 'error' })
  const { format: found = '', width, height } = await source.metadata()
  let image = source.autoOrient()
  let isSized = false
  let format = (formats.includes(found) ? found : found === 'gif' ? 'webp' : 'png') as Format
  let quality: number | undefined
  let keeps = true
  for (const operation of operations) {
    if (operation.type === 'strip_metadata' || operation.type === 'thumbnail') keeps = false
    if (operation.type === 'resize' || operation.type === 'thumbnail') {
      image = sized(isSized ? await settled(image, sharp) : image, operation)
      isSized = true
    }
    if (operation.type === 'crop') {
      image = await cropped(image, operation, sharp)
      isSized = true
    }
    if (operation.type === 'thumbnail') format = 'webp'
    format = operation.format ?? format
    quality = operation.quality ?? quality
  }
  const written = await (keeps ? image.keepMetadata() : image)
    .toFormat(format, {
      ...(quality === undefined ? {} : { quality }),
      ...(format === 'avif' && largest(operations, width, height) > manyPixels ? { effort: 0 } : {}),
    })
    .toFile(output)
  return { ok: true, format, size: (await stat(output)).size, width: written.width, height: written.height }
}

const failed = (error: Error): ImageReply => {
  const isLarge = /pixel limit|too large|exceeds/i.test(error.message)
  return {
    ok: false,
    code: isLarge ? 'TOO_MANY_PIXELS' : 'UNREADABLE_IMAGE',
    message: isLarge
      ? 'The image has more than 50 megapixels.'
      : 'The file is broken, or is no image of a known format.',
  }
}

const unavailable: ImageReply = {
  ok: false,
  code: 'IMAGES_UNAVAILABLE',
  message: 'This installation has no image library for its platform.',
}

const serve = async (): Promise<void> => {
  const sharp = await import('sharp').then(
    (module) => limited(module.default),
    () => null,
  )
  setInterval(() => {
    if (process.memoryUsage.rss() > mostMemory) process.kill(process.pid, outOfMemory)
  }, 50).unref()
  // its parent has crashed: nobody limits the time of its work any more, and an exit would wait for it
  process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
  process.on('message', async (request: ImageRequest) => {
    process.send?.(sharp ? await change(sharp, request).catch(failed) : unavailable)
  })
}

await serve()
