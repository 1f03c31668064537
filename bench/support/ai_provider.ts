// A provider of AI in a process of its own, in OpenAI's format: its first piece comes after a fixed delay, the last when it is told to end.
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answer } from './child.ts'

export type AiProviderCommand =
  | { readonly kind: 'start' }
  /** How long the first piece takes, and whether streams stay open after it. */
  | { readonly kind: 'behave'; readonly delayMs: number; readonly staysOpen: boolean }
  /** How many streams are open. */
  | { readonly kind: 'count' }
  | { readonly kind: 'release' }

const open = new Set<ServerResponse>()
let behaviour = { delayMs: 0, staysOpen: false }

const piece = (content: string) =>
  `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`
const last = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 } })}\n\ndata: [DONE]\n\n`

const server = createServer((request, response) => {
  request.resume()
  request.once('end', () => {
    open.add(response)
    response.once('close', () => open.delete(response))
    setTimeout(() => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.socket?.setNoDelay(true)
      response.write(piece('Hello'))
      if (!behaviour.staysOpen) response.end(last)
    }, behaviour.delayMs)
  })
})

// a stream on which nothing comes for a minute is ended
setInterval(() => {
  if (behaviour.staysOpen) for (const response of open) if (response.headersSent) response.write(piece('.'))
}, 10_000)

answer<AiProviderCommand>(async (command) => {
  if (command.kind === 'start') {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  if (command.kind === 'behave') behaviour = command
  if (command.kind === 'release') for (const response of open) response.end(last)
  return open.size
})
