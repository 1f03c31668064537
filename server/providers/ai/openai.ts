import {
  at,
  type ChatRequest,
  type Dialect,
  type FinishReason,
  isObject,
  type Message,
  type Part,
  type Piece,
  parsed,
  systemOf,
  textOf,
  usageOf,
} from '#server/providers/ai/chat.ts'

const path = '/v1/chat/completions'

const reasons: Readonly<Record<string, FinishReason>> = {
  stop: 'stop',
  length: 'length',
  model_length: 'length',
  content_filter: 'content_filter',
}

/** Mistral documents the content of a message as a string or a list of parts, also in answers. */
const contentOf = (content: unknown): string =>
  Array.isArray(content)
    ? content.map((part) => (at(part, 'type') === 'text' ? textOf(at(part, 'text')) : '')).join('')
    : textOf(content)

const usagePiece = (body: unknown) => {
  const usage = at(body, 'usage')
  return isObject(usage) ? { usage: usageOf(at(usage, 'prompt_tokens'), at(usage, 'completion_tokens')) } : undefined
}

const reasonPiece = (reason: unknown): { finishReason: FinishReason } | undefined =>
  typeof reason === 'string' ? { finishReason: reasons[reason] ?? 'other' } : undefined

const read = (body: unknown): Piece | null => {
  const choice = at(body, 'choices', 0)
  if (!isObject(choice)) return null
  return {
    text: contentOf(at(choice, 'message', 'content')),
    ...usagePiece(body),
    ...reasonPiece(choice['finish_reason']),
  }
}

const readEvent = (data: string): Piece | null => {
  if (data.trim() === '[DONE]') return { text: '', isLast: true }
  const event = parsed(data)
  if (!isObject(event) || event['error']) return { text: '', isError: true }
  return {
    text: contentOf(at(event, 'choices', 0, 'delta', 'content')),
    ...usagePiece(event),
    ...reasonPiece(at(event, 'choices', 0, 'finish_reason')),
  }
}

type Tongue = {
  readonly limit: 'max_completion_tokens' | 'max_tokens'
  readonly streamFields: Readonly<Record<string, unknown>>
  readonly part: (part: Part) => unknown
}

const messagesOf = (chat: ChatRequest, part: Tongue['part']) => {
  // both refuse the JSON mode when no message speaks of JSON
  const system = systemOf(chat, chat.format.type === 'json_object')
  const of = ({ role, content }: Message) => ({
    role,
    content: typeof content === 'string' ? content : content.map(part),
  })
  return [
    ...(system === null ? [] : [{ role: 'system', content: system }]),
    ...chat.messages.filter(({ role }) => role !== 'system').map(of),
  ]
}

const speak = (provider: 'openai' | 'mistral', { limit, streamFields, part }: Tongue): Dialect => ({
  provider,
  headers: (apiKey) => ({ authorization: `Bearer ${apiKey}` }),
  request: (chat) => ({
    path,
    json: {
      model: chat.model,
      messages: messagesOf(chat, part),
      [limit]: chat.maxTokens,
      ...(chat.format.type === 'text' ? {} : { response_format: chat.format }),
      ...(chat.isStream ? streamFields : {}),
    },
  }),
  native: (body) => ({ path, json: body }),
  read,
  readEvent,
  endsSilently: false,
})

/** OpenAI's Chat Completions API. */
export const openai = speak('openai', {
  limit: 'max_completion_tokens',
  // without the option a stream reports no usage
  streamFields: { stream: true, stream_options: { include_usage: true } },
  part: (part) => part,
})

/** Mistral's Chat Completion API: usage comes with the last chunk. */
export const mistral = speak('mistral', {
  limit: 'max_tokens',
  streamFields: { stream: true },
  part: (part) => (part.type === 'text' ? part : { type: 'image_url', image_url: part.image_url.url }),
})
