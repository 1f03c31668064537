import { createParser } from 'eventsource-parser'

/** In characters, of a line or an event: a provider that sends no line break must not fill the memory. */
const maxBufferSize = 4 * 1024 * 1024

/**
 * Reads server-sent events from bytes as they come, wherever these are cut, also within a character. Returns for each piece of the stream the data of the
 * events that it completes. Throws for an event that is too long.
 */
export const createEventReader = (): ((bytes: Uint8Array) => string[]) => {
  const decoder = new TextDecoder()
  let events: string[] = []
  const parser = createParser({
    maxBufferSize,
    onEvent: ({ data }) => void events.push(data),
    // a field that the format does not know is no reason to end a stream
    onError: (error) => {
      if (error.type === 'max-buffer-size-exceeded') throw error
    },
  })
  return (bytes) => {
    events = []
    parser.feed(decoder.decode(bytes, { stream: true }))
    return events
  }
}
