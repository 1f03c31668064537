/** What callers send to a prompt, how it is counted, and the request to a model that it becomes. */
import { z } from 'zod'
import { jsonSize } from '#server/http/json.ts'
import { between, JsonObject, SmallJson, Text } from '#server/http/schemas.ts'
import { numberText } from '#server/json/lossless_json.ts'
import type { ChatRequest, Format, Message, Part } from '#server/providers/ai/chat.ts'

export const list = (values: readonly string[]) => `must be one of ${values.join(', ')}`

const imageUrl = /^(https:\/\/\S{1,4000}|data:image\/[\w.+-]+;base64,[A-Za-z0-9+/=]+)$/
const MessagePart = z.discriminatedUnion(
  'type',
  [
    z.object({ type: z.literal('text'), text: Text(500_000) }),
    z.object({
      type: z.literal('image_url'),
      image_url: z.object({
        url: z.string().regex(imageUrl, 'must be an https URL, or a data URL of an image in base64'),
        detail: z.enum(['auto', 'low', 'high']).optional(),
      }),
    }),
  ],
  'must be a part of type text or image_url',
)
const Content = z.union(
  [Text(500_000, 1), z.array(MessagePart).min(1).max(50)],
  'must be a text of 1 to 500000 characters, or 1 to 50 parts of type text or image_url',
)
const messagesOf = (roles: readonly ['user', 'assistant'] | readonly ['user', 'assistant', 'system']) =>
  z
    .array(z.object({ role: z.enum(roles, list(roles)), content: Content }), 'must be a list of messages')
    .max(200, 'must have at most 200 messages')
    .refine(
      (messages) => messages.length === 0 || messages.some(({ role }) => role !== 'system'),
      'must have a message of a user',
    )

const formats = ['text', 'json', 'json_object', 'json_schema'] as const
const ResponseFormat = z.union(
  [
    z.enum(['text', 'json']),
    z.object({ type: z.enum(['text', 'json', 'json_object']) }),
    z.object({
      type: z.literal('json_schema'),
      json_schema: z.object({
        name: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
        schema: JsonObject,
        strict: z.boolean().optional(),
      }),
    }),
  ],
  `must be text or json, or an object whose type is ${formats.join(', ')}`,
)

const Context = SmallJson(65_536)

const invocation = {
  context: Context.default({}),
  max_tokens: between(1, 200_000).optional(),
  stream: z.boolean('must be true or false').default(false),
  response_format: ResponseFormat.optional(),
}
export const ClientInvocation = z.object({ ...invocation, messages: messagesOf(['user', 'assistant']).default([]) })
export const AdminInvocation = z.object({
  ...invocation,
  messages: messagesOf(['user', 'assistant', 'system']).default([]),
})
export type Invocation = z.output<typeof AdminInvocation>

const Expectation = z
  .strictObject({
    contains: Text(10_000, 1).optional(),
    regex: Text(1000, 1).optional(),
    json_schema: SmallJson(20_000).optional(),
  })
  .refine((expect) => Object.keys(expect).length > 0, 'must have contains, regex or json_schema')

export const Evaluation = z.object({
  runs: between(1, 5).default(1),
  cases: z
    .array(
      z.object({
        context: Context.default({}),
        messages: messagesOf(['user', 'assistant', 'system']).default([]),
        expect: Expectation,
      }),
      'must be a list of cases',
    )
    .min(1, 'must have 1 to 20 cases')
    .max(20, 'must have 1 to 20 cases'),
})

const isImage = (part: Part) => part.type === 'image_url'

/** What a request says, as api.ai_begin counts it: images by their number, all else by its bytes. */
export const measure = ({
  messages,
  context,
  response_format,
}: Pick<Invocation, 'messages' | 'context' | 'response_format'>) => {
  const parts = messages.flatMap(({ content }): readonly Part[] =>
    typeof content === 'string' ? [{ type: 'text', text: content }] : content,
  )
  const texts = parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  // the schema is read by the model as well
  const wanted = formatOf(response_format)
  const said = [
    ...texts,
    ...wordsOf(context),
    ...(wanted.type === 'json_schema' ? wordsOf(wanted.json_schema.schema) : []),
  ]
  // a message and a format have words of their own around them
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0) + messages.length * 16
  const format = typeof response_format === 'object' ? jsonSize(response_format).bytes + 256 : response_format ? 256 : 0
  return { texts: said.join('\n'), bytes: bytes + format, images: parts.filter(isImage).length }
}

/** The texts and numbers within a value, and the names of its fields, with which an object fills a placeholder. */
const wordsOf = (value: unknown): string[] => {
  const digits = numberText(value)
  if (digits !== null) return [digits]
  if (Array.isArray(value)) return value.flatMap(wordsOf)
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).flatMap(([name, held]) => [name, ...wordsOf(held)])
  return typeof value === 'string' ? [value] : []
}

export const formatOf = (format: Invocation['response_format']): Format => {
  const type = typeof format === 'object' ? format.type : (format ?? 'text')
  if (type === 'text') return { type: 'text' }
  if (typeof format === 'object' && format.type === 'json_schema') return format
  return { type: 'json_object' }
}

/** What was sent, as it is kept when the prompt logs payloads: without images. */
export const loggedMessages = (messages: readonly Message[]) =>
  messages.map(({ role, content }) => ({
    role,
    content:
      typeof content === 'string'
        ? content
        : content.map((part) => (part.type === 'text' ? part.text : '[image]')).join('\n'),
  }))

/** A request to a model: without messages the system prompt is the message. */
export const chatOf = (
  begun: { readonly model: string; readonly system: string | null; readonly max_tokens: number },
  { messages, stream, response_format }: Pick<Invocation, 'messages' | 'stream' | 'response_format'>,
): ChatRequest => ({
  model: begun.model,
  system: messages.length > 0 ? begun.system : null,
  messages: messages.length > 0 ? (messages as readonly Message[]) : [{ role: 'user', content: begun.system ?? '' }],
  maxTokens: begun.max_tokens,
  format: formatOf(response_format),
  isStream: stream,
})
