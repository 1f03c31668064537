import { createSocket } from 'node:dgram'
import { type Answer, decode, encode } from 'dns-packet'

export type DnsServer = {
  /** For DNS_SERVERS. */
  readonly address: string
  /** Writes records as the API names them: `{type, name, value}`. */
  put(records: readonly { type: string; name: string; value: string }[]): void
  remove(match: (record: { type: string; name: string }) => boolean): void
  /** Every question is answered with SERVFAIL from now on, or truly again. */
  fail(isFailing: boolean): void
  /** Runs before each answer: for what happens while DNS is asked. */
  beforeAnswer(hook: (() => Promise<void>) | null): void
  stop(): Promise<void>
}

type Stored = { readonly type: string; readonly name: string; readonly value: string }

const answerOf = ({ type, name, value }: Stored): Answer => {
  if (type === 'MX') {
    const [preference = '10', exchange = ''] = value.split(' ')
    return { type: 'MX', name, data: { preference: Number(preference), exchange } }
  }
  // a string of TXT has at most 255 bytes: zone files split longer ones, and so does this server
  if (type === 'TXT') return { type: 'TXT', name, data: value.match(/.{1,255}/gs) ?? [''] }
  return { type: 'CNAME', name, data: value }
}

/** A name server of the test's own on a free port, over UDP. */
export const startDnsServer = async (): Promise<DnsServer> => {
  let stored: Stored[] = []
  let isFailing = false
  let hook: (() => Promise<void>) | null = null
  const socket = createSocket('udp4')
  socket.on('message', async (message, from) => {
    const query = decode(message)
    const question = query.questions?.[0]
    if (!question) return
    await hook?.()
    const name = question.name.toLowerCase()
    const named = stored.filter((record) => record.name.toLowerCase() === name)
    const answers = named.filter(({ type }) => type === question.type).map(answerOf)
    const code = isFailing ? 2 : named.length === 0 ? 3 : 0
    const reply = encode({
      type: 'response',
      id: query.id ?? 0,
      flags: 0x180 | code,
      questions: [question],
      answers: isFailing ? [] : answers,
    })
    socket.send(reply, from.port, from.address)
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  return {
    address: `127.0.0.1:${socket.address().port}`,
    put: (records) => void stored.push(...records),
    remove: (match) => {
      stored = stored.filter((record) => !match(record))
    },
    fail: (failing) => {
      isFailing = failing
    },
    beforeAnswer: (given) => {
      hook = given
    },
    stop: () => new Promise((resolve) => socket.close(() => resolve())),
  }
}
