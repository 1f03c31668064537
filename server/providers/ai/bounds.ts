import { at, countOf, isObject, textOf } from '#server/providers/ai/chat.ts'

/** Tokens that an image counts, as api.ai_begin counts those of prompts. */
const imageTokens = 3000
/** What a request that names no limit may write: the longest answer of the usual models. */
const unlimitedOutput = 16_384
/** Beyond what any model reads or writes. */
const mostTokens = 10_000_000

/** The base64 of an image, in whatever place a provider has it. */
const imageIn = (held: Record<string, unknown>): string => {
  const type = textOf(held['media_type'] ?? held['mimeType'] ?? held['mime_type'])
  return type.startsWith('image/') ? textOf(held['data']) : ''
}

/** Images within a body, and the bytes of those that it holds itself, which are no text. */
const imagesOf = (body: unknown) => {
  const found = { images: 0, bytes: 0 }
  const rest: unknown[] = [body]
  const note = (data: string) => {
    found.images += 1
    found.bytes += data.length
  }
  while (rest.length > 0) {
    const value = rest.pop()
    if (typeof value === 'string') {
      if (value.startsWith('data:image/')) note(value)
    } else if (Array.isArray(value)) for (const each of value) rest.push(each)
    else if (isObject(value)) {
      const data = imageIn(value)
      if (data !== '') note(data)
      // one that the provider fetches
      else if (isLink(value)) note('')
      for (const [name, each] of Object.entries(value)) if (data === '' || name !== 'data') rest.push(each)
    }
  }
  return found
}

/** A part that names an image by its address. */
const isLink = (part: Record<string, unknown>): boolean => {
  const url = at(part, 'image_url', 'url') ?? part['image_url'] ?? (part['type'] === 'url' ? part['url'] : undefined)
  return /^https?:/.test(textOf(url ?? part['fileUri'] ?? part['file_uri']))
}

const first = (...values: readonly unknown[]): number | undefined =>
  values.map(countOf).find((count) => count !== undefined)

/** The tokens that the answers to a body in a provider's own format may have, and how many answers it asks for. */
const mostOutput = (body: Readonly<Record<string, unknown>>): number => {
  const config = body['generationConfig'] ?? body['generation_config']
  const limit = first(
    body['max_completion_tokens'],
    body['max_tokens'],
    at(config, 'maxOutputTokens'),
    at(config, 'max_output_tokens'),
  )
  const answers = first(body['n'], at(config, 'candidateCount'), at(config, 'candidate_count')) ?? 1
  return Math.min((limit ?? unlimitedOutput) * Math.max(1, answers), mostTokens)
}

/**
 * The most tokens that a body in a provider's own format may cost: one for each byte of what it says, a number for each image, and its own limit of the
 * answer. What the provider fetches or looks up by itself is not known before.
 */
export const boundOf = (body: Readonly<Record<string, unknown>>, sentBytes: number) => {
  const { images, bytes } = imagesOf(body)
  const textBytes = Math.max(0, sentBytes - bytes)
  return { textBytes, input: Math.min(textBytes + images * imageTokens, mostTokens), output: mostOutput(body) }
}
