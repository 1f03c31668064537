/** The longest line or event: a provider that sends no line break must not fill the memory. */
const mostCharacters = 4 * 1024 * 1024

/**
 * Reads server-sent events from bytes as they come, wherever these are cut: within a character, between CR and LF, in a field's name. Returns for each
 * piece of the stream the data of the events that it completes. Throws for an event that is too long.
 */
export const createEventReader = (): ((bytes: Uint8Array) => string[]) => {
  const decoder = new TextDecoder()
  let rest = ''
  /** How far `rest` was searched for a line break. */
  let searched = 0
  let data: string | null = null
  /** The last piece ended in CR: a LF that follows belongs to it. */
  let skipsLf = false

  const take = (line: string, events: string[]): void => {
    if (line === '') {
      if (data !== null) events.push(data)
      data = null
      return
    }
    if (line !== 'data' && !line.startsWith('data:')) return
    const value = line.slice(5)
    const text = value.startsWith(' ') ? value.slice(1) : value
    data = data === null ? text : `${data}\n${text}`
    if (data.length > mostCharacters) throw new Error('an event of the provider is too long')
  }

  return (bytes) => {
    const events: string[] = []
    let text = decoder.decode(bytes, { stream: true })
    if (skipsLf && text !== '') {
      if (text.startsWith('\n')) text = text.slice(1)
      skipsLf = false
    }
    rest += text
    let start = 0
    for (let index = searched; index < rest.length; index += 1) {
      const code = rest.charCodeAt(index)
      if (code !== 10 && code !== 13) continue
      take(rest.slice(start, index), events)
      if (code === 13) {
        if (index + 1 === rest.length) skipsLf = true
        else if (rest.charCodeAt(index + 1) === 10) index += 1
      }
      start = index + 1
    }
    if (start > 0) rest = rest.slice(start)
    searched = rest.length
    if (rest.length > mostCharacters) throw new Error('a line of the provider is too long')
    return events
  }
}
