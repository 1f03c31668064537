import { type ChatRequest, type Piece, partsOf } from '#server/providers/ai/chat.ts'

/** The provider of development: answers with the text of the last message, in words. A token is a word. */
export const echo = (chat: ChatRequest): readonly Piece[] => {
  const last = chat.messages.at(-1)
  const text = last
    ? partsOf(last)
        .map((part) => (part.type === 'text' ? part.text : '[image]'))
        .join('')
    : ''
  const words = (value: string) => value.match(/\S+\s*/g) ?? []
  const written = words(text).slice(0, chat.maxTokens)
  const input = [
    chat.system ?? '',
    ...chat.messages.flatMap(partsOf).map((part) => (part.type === 'text' ? part.text : '')),
  ]
  return [
    ...written.map((word) => ({ text: word })),
    {
      text: '',
      usage: { input: input.flatMap(words).length, output: written.length },
      finishReason: written.length < words(text).length ? 'length' : 'stop',
      isLast: true,
    },
  ]
}
