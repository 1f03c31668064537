import { type ClientHttp2Session, connect, constants } from 'node:http2'
import { timeoutMs } from '#server/providers/push/message.ts'

/** An idle connection is closed; the next message opens another. */
const idleMs = 5 * 60_000
/** A connection that is waited on and has been silent for so long is asked whether it lives. */
const silentMs = 1000
/** And has so long to answer. */
const pingMs = 3000
const maxAnswerBytes = 16 * 1024

export type Sent = { readonly status: number | null; readonly body: string; readonly retryAfter: string | null }

type Session = {
  readonly http2: ClientHttp2Session
  /** When something came from the other side. */
  receivedAt: number
  answers: number
  running: number
  /** A PING is on its way. */
  isAsked: boolean
  watch: NodeJS.Timeout | undefined
}

/**
 * Ends a connection that has died without a word, as where a NAT or a firewall has forgotten it: nothing comes back and nothing is closed. Bytes
 * that are acknowledged by TCP say nothing of who is behind it; only an answer to a PING does.
 */
const look = (session: Session): void => {
  const { http2 } = session
  if (session.isAsked || http2.destroyed || http2.connecting || performance.now() - session.receivedAt < silentMs)
    return
  session.isAsked = true
  // an answer that is there already is read first, where this process was busy
  const late = setTimeout(() => setImmediate(() => session.isAsked && http2.destroy()), pingMs)
  const answered = () => {
    clearTimeout(late)
    session.isAsked = false
    session.receivedAt = performance.now()
  }
  http2.ping((error) => {
    if (error) clearTimeout(late)
    else answered()
  })
}

/** One request; a broken connection is an answer without a status. */
const request = (session: Session, headers: Record<string, string>, body: string): Promise<Sent> =>
  new Promise((done) => {
    let status: number | null = null
    let retryAfter: string | null = null
    let answer = ''
    const stream = session.http2.request({ [constants.HTTP2_HEADER_METHOD]: 'POST', ...headers })
    const timer = setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), timeoutMs)
    stream.setEncoding('utf8')
    stream.on('response', (received) => {
      status = Number(received[':status'])
      retryAfter = String(received['retry-after'] ?? '') || null
      session.receivedAt = performance.now()
      session.answers += 1
    })
    stream.on('data', (chunk: string) => {
      session.receivedAt = performance.now()
      if (answer.length < maxAnswerBytes) answer += chunk
    })
    // 'close' follows; without a listener the error would end the process
    stream.on('error', () => undefined)
    stream.on('close', () => {
      clearTimeout(timer)
      done({ status, body: answer, retryAfter })
    })
    stream.end(body)
  })

/**
 * A connection over HTTP/2 that is opened when it is needed, and again after the server closed it, said that it goes away, or left a request
 * without an answer. A request on a connection that had served others is made once more on a new one: its receiver must know a repetition.
 */
export const createSessions = (url: string) => {
  let current: Session | null = null
  const forget = (gone: Session) => {
    if (current === gone) current = null
  }
  const open = (): Session => {
    const http2 = connect(url)
    const made: Session = {
      http2,
      receivedAt: performance.now(),
      answers: 0,
      running: 0,
      isAsked: false,
      watch: undefined,
    }
    http2.on('error', () => forget(made))
    http2.on('goaway', () => {
      forget(made)
      // what is in progress ends first
      http2.close()
    })
    http2.on('close', () => forget(made))
    http2.setTimeout(idleMs, () => http2.close())
    http2.unref()
    return made
  }
  const usable = (): Session => {
    if (!current || current.http2.closed || current.http2.destroyed) current = open()
    return current
  }

  const postOn = async (session: Session, headers: Record<string, string>, body: string): Promise<Sent> => {
    // the process lives for as long as an answer is awaited
    session.running += 1
    if (session.running === 1) {
      session.http2.ref()
      look(session)
      session.watch = setInterval(() => look(session), silentMs / 2)
    }
    try {
      return await request(session, headers, body)
    } finally {
      session.running -= 1
      if (session.running === 0) {
        session.http2.unref()
        clearInterval(session.watch)
      }
    }
  }
  /** No answer says something about the connection: others may finish there, and nobody begins anything. */
  const suspect = (session: Session) => {
    forget(session)
    if (session.running === 0) session.http2.destroy()
    else session.http2.close()
  }

  return {
    async post(headers: Record<string, string>, body: string): Promise<Sent> {
      const used = usable()
      const isProven = used.answers > 0
      const sent = await postOn(used, headers, body)
      if (sent.status !== null) return sent
      suspect(used)
      return isProven ? postOn(usable(), headers, body) : sent
    },
    close() {
      current?.http2.close()
      current = null
    },
  }
}
