import { SMTPServer } from 'smtp-server'

/** A mail that arrived: its envelope, its headers by lower-cased name, and its text as a person reads it. */
export type Received = {
  readonly from: string
  readonly to: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  readonly raw: string
}

export type MailServer = {
  /** For SMTP_URL. */
  readonly url: string
  readonly received: Received[]
  /** Those to one address, oldest first. */
  to(address: string): Received[]
  /** What happens between the end of a message and the 250 for it. */
  before250(hook: ((message: Received) => Promise<void>) | null): void
  /** The next dialogues are refused with this status, or taken again with null. */
  refuse(status: number | null): void
  stop(): Promise<void>
}

/** A mail server of the test's own on a free port: a real dialogue, nothing leaves the machine. */
export const startMailServer = async (): Promise<MailServer> => {
  const received: Received[] = []
  let refusal: number | null = null
  let hook: ((message: Received) => Promise<void>) | null = null
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    // clients keep their connections: the end of a test does not wait for them
    closeTimeout: 50,
    logger: false,
    onMailFrom(_address, _session, done) {
      if (refusal === null) return done()
      done(Object.assign(new Error('refused by the test'), { responseCode: refusal }))
    },
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', async () => {
        const from = session.envelope.mailFrom ? session.envelope.mailFrom.address : ''
        const message = parse(
          from,
          session.envelope.rcptTo.map(({ address }) => address),
          Buffer.concat(chunks).toString(),
        )
        received.push(message)
        await hook?.(message)
        done()
      })
    },
  })
  server.on('error', () => undefined)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.server.address()
  if (address === null || typeof address === 'string') throw new Error('the mail server has no port')
  return {
    url: `smtp://127.0.0.1:${address.port}?tls=off`,
    received,
    to: (wanted) => received.filter(({ to }) => to.includes(wanted)),
    before250(next) {
      hook = next
    },
    refuse(status) {
      refusal = status
    },
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

/** Reads a raw message: one part or the first text part of several, quoted-printable or base64. */
export const parse = (from: string, to: readonly string[], raw: string): Received => {
  const { headers, body } = split(raw)
  return { from, to, headers, text: textOf(headers, body), raw }
}

const split = (raw: string): { headers: Record<string, string>; body: string } => {
  const end = raw.indexOf('\r\n\r\n')
  const lines = raw
    .slice(0, end)
    .replace(/\r\n[ \t]+/g, ' ')
    .split('\r\n')
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  )
  return { headers, body: raw.slice(end + 4) }
}

const textOf = (headers: Record<string, string>, body: string): string => {
  const boundary = /boundary="([^"]+)"/.exec(headers['content-type'] ?? '')?.[1]
  if (boundary) {
    const part = body.split(`--${boundary}`)[1]?.replace(/^\r\n/, '') ?? ''
    const inner = split(part)
    return textOf(inner.headers, inner.body)
  }
  const encoding = headers['content-transfer-encoding']?.toLowerCase()
  const plain = body.replace(/\r\n/g, '\n').trimEnd()
  if (encoding === 'base64') return Buffer.from(plain, 'base64').toString()
  if (encoding !== 'quoted-printable') return plain
  const bytes = plain
    .replace(/=\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString()
}
