import {
  at,
  type Dialect,
  dataUrl,
  type FinishReason,
  isObject,
  type Message,
  messagesWithSchema,
  type Part,
  type Piece,
  parsed,
  partsOf,
  systemOf,
  textOf,
  usageOf,
} from '#server/providers/ai/chat.ts'

const reasons: Readonly<Record<string, FinishReason>> = {
  STOP: 'stop',
  MAX_TOKENS: 'length',
  SAFETY: 'content_filter',
  RECITATION: 'content_filter',
  BLOCKLIST: 'content_filter',
  PROHIBITED_CONTENT: 'content_filter',
  SPII: 'content_filter',
}

const partOf = (part: Part) => {
  if (part.type === 'text') return { text: part.text }
  const { url } = part.image_url
  const inline = dataUrl(url)
  return inline ? { inlineData: { mimeType: inline.type, data: inline.data } } : { fileData: { fileUri: url } }
}

const contentOf = (message: Message) => ({
  role: message.role === 'assistant' ? 'model' : 'user',
  parts: partsOf(message).map(partOf),
})

/** A model as it stands in a path; null for one that would make another path of it. */
const modelOf = (model: string): string | null => {
  const name = model.replace(/^models\//, '')
  return /[^/.]/.test(name) ? name : null
}

/** The model is part of the path; the kind of response too. */
const wireOf = (model: string, isStream: boolean, json: unknown) => ({
  path: isStream ? '/v1beta/models/{model}:streamGenerateContent' : '/v1beta/models/{model}:generateContent',
  params: { model },
  ...(isStream ? { query: { alt: 'sse' } } : {}),
  json,
})

const read = (body: unknown): Piece | null => {
  const blocked = at(body, 'promptFeedback', 'blockReason')
  const candidate = at(body, 'candidates', 0)
  const counts = at(body, 'usageMetadata')
  if (!isObject(candidate) && !isObject(counts) && blocked === undefined) return null
  const parts = at(candidate, 'content', 'parts')
  const text = Array.isArray(parts)
    ? parts.map((part) => (at(part, 'thought') === true ? '' : textOf(at(part, 'text')))).join('')
    : ''
  const written = at(counts, 'candidatesTokenCount')
  const thought = at(counts, 'thoughtsTokenCount')
  const output =
    typeof written === 'number' || typeof thought === 'number' ? Number(written ?? 0) + Number(thought ?? 0) : undefined
  const reason = at(candidate, 'finishReason')
  const finishReason =
    typeof reason === 'string' ? (reasons[reason] ?? 'other') : blocked ? 'content_filter' : undefined
  return {
    text,
    ...(isObject(counts) ? { usage: usageOf(at(counts, 'promptTokenCount'), output) } : {}),
    ...(finishReason ? { finishReason } : {}),
  }
}

const readEvent = (data: string): Piece | null => {
  const event = parsed(data)
  if (!isObject(event) || event['error']) return { text: '', isError: true }
  return read(event)
}

/** Google's Gemini API, v1beta. A stream ends with its connection, after a candidate with a finishReason. */
export const google: Dialect = {
  provider: 'google',
  headers: (apiKey) => ({ 'x-goog-api-key': apiKey }),
  request(chat) {
    const system = systemOf(chat, chat.format.type === 'json_schema')
    return wireOf(modelOf(chat.model) ?? 'unknown', chat.isStream, {
      contents: messagesWithSchema(chat).map(contentOf),
      ...(system === null ? {} : { systemInstruction: { parts: [{ text: system }] } }),
      generationConfig: {
        maxOutputTokens: chat.maxTokens,
        ...(chat.format.type === 'text' ? {} : { responseMimeType: 'application/json' }),
      },
    })
  },
  // neither field is one of the body
  native({ model, stream, ...body }) {
    const name = typeof model === 'string' ? modelOf(model) : null
    return name ? wireOf(name, stream === true, body) : null
  },
  read,
  readEvent,
  endsSilently: true,
}
