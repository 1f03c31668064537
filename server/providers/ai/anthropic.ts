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
  systemOf,
  textOf,
  type Usage,
  usageOf,
} from '#server/providers/ai/chat.ts'

const path = '/v1/messages'

const reasons: Readonly<Record<string, FinishReason>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  refusal: 'content_filter',
}

const partOf = (part: Part) => {
  if (part.type === 'text') return part
  const { url } = part.image_url
  const inline = dataUrl(url)
  return {
    type: 'image',
    source: inline ? { type: 'base64', media_type: inline.type, data: inline.data } : { type: 'url', url },
  }
}

const messageOf = ({ role, content }: Message) => ({
  role,
  content: typeof content === 'string' ? content : content.map(partOf),
})

/** Cached input is input too: it is read, and priced at most like other input. */
const readUsage = (usage: unknown): Usage => {
  const input = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens'].map((name) =>
    at(usage, name),
  )
  const counted = input.filter((count): count is number => typeof count === 'number')
  return usageOf(
    counted.length > 0 ? counted.reduce((sum, count) => sum + count, 0) : undefined,
    at(usage, 'output_tokens'),
  )
}

const reasonOf = (reason: unknown): { finishReason: FinishReason } | undefined =>
  typeof reason === 'string' ? { finishReason: reasons[reason] ?? 'other' } : undefined

const read = (body: unknown): Piece | null => {
  const content = at(body, 'content')
  if (!Array.isArray(content)) return null
  const text = content.map((block) => (at(block, 'type') === 'text' ? textOf(at(block, 'text')) : '')).join('')
  return { text, usage: readUsage(at(body, 'usage')), ...reasonOf(at(body, 'stop_reason')) }
}

const readEvent = (data: string): Piece | null => {
  const event = parsed(data)
  switch (at(event, 'type')) {
    case 'message_start':
      return { text: '', usage: readUsage(at(event, 'message', 'usage')) }
    case 'content_block_delta':
      return at(event, 'delta', 'type') === 'text_delta' ? { text: textOf(at(event, 'delta', 'text')) } : null
    case 'message_delta':
      // counts are cumulative
      return { text: '', usage: readUsage(at(event, 'usage')), ...reasonOf(at(event, 'delta', 'stop_reason')) }
    case 'message_stop':
      return { text: '', isLast: true }
    case 'error':
      return { text: '', isError: true }
    default:
      // pings, starts and ends of blocks, and events that are new
      return isObject(event) ? null : { text: '', isError: true }
  }
}

/** Anthropic's Messages API, version 2023-06-01. */
export const anthropic: Dialect = {
  provider: 'anthropic',
  headers: (apiKey) => ({ 'x-api-key': apiKey, 'anthropic-version': '2023-06-01' }),
  request(chat) {
    const system = systemOf(chat, true)
    return {
      path,
      json: {
        model: chat.model,
        max_tokens: chat.maxTokens,
        ...(system === null ? {} : { system }),
        messages: messagesWithSchema(chat).map(messageOf),
        ...(chat.isStream ? { stream: true } : {}),
      },
    }
  },
  native: (body) => ({ path, json: body }),
  read,
  readEvent,
  endsSilently: false,
}
