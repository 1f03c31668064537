import { randomBytes } from 'node:crypto'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { isIP, Socket } from 'node:net'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import type { Logger } from 'pino'
import { StartError } from '#server/errors.ts'
import { type Cidr, isExempt, isPublicAddress } from '#server/providers/addresses.ts'
import { resolveByDns, resolveBySystem } from '#server/providers/outbound.ts'
import { type DeliveryOutcome, type Measures, noMeasures } from '#server/telemetry/measures.ts'
import { spanned } from '#server/telemetry/spans.ts'

/** One message to one person. `from` and `replyTo` default to the installation's own. */
export type Message = {
  readonly to: string
  readonly subject: string
  /** Null for a message that is HTML alone. */
  readonly text: string | null
  readonly html?: string
  readonly from?: { readonly name?: string | null; readonly address: string } | null
  /** The display name for the installation's own address, used when `from` is absent. */
  readonly fromName?: string | null
  readonly replyTo?: string | null
  /** More headers, checked by the caller: names of the allow-list, values of one line. */
  readonly headers?: Readonly<Record<string, string>>
  /** The envelope sender, where bounces go; the address of `from` without one. */
  readonly returnPath?: string | null
  /** Signs the message for the domain of its sender (RFC 6376). */
  readonly dkim?: { readonly domain: string; readonly selector: string; readonly privateKey: string } | null
  /** The Message-ID is derived from this, so that receivers can deduplicate a mail that is sent again after a crash. */
  readonly id?: string
}

/** A project's own mail server: the config of its `smtp` integration. */
export type SmtpConfig = {
  readonly host: string
  readonly port: number | string
  readonly secure?: boolean
  readonly username?: string
  readonly password?: string
  readonly webhook_secret?: string
}

export type Mail = {
  /**
   * Resolves when the server has accepted the message; otherwise throws the server's response. Codes and links are never logged. `by` is the
   * project's own mail server, in place of the installation's.
   */
  send(message: Message, by?: SmtpConfig | null): Promise<void>
  /** Connects to a project's mail server and signs in, without sending; throws what went wrong. */
  verify(by: SmtpConfig): Promise<void>
  close(): void
}

declare module '#server/services.ts' {
  interface Services {
    readonly mail: Mail
  }
}

export type MailOptions = {
  readonly smtpUrl: string | undefined
  readonly from: string
  /** Where messages are written without SMTP, each as an .eml file. */
  readonly folder: string
  readonly now: () => Date
  readonly log: Logger
  /** Networks that are exempt from the refusal of private addresses, for the mail servers of projects. */
  readonly allowedCidrs?: readonly Cidr[]
  /** The longest conversation with a mail server. */
  readonly longestMs?: number
  readonly measures?: Pick<Measures, 'delivery'>
}

// header injection: an address is one token; a line break or a second recipient in it could add headers
const oneAddress = /^[^\s\p{Cc}@,;<>()"\\]+@[^\s\p{Cc}@,;<>()"\\:[\]]+$/u
const timeoutMs = 20_000
/** The whole of a conversation with a mail server: one that sends a byte now and then would hold a worker for ever. */
const conversationMs = 120_000

/** Mail by SMTP_URL, or, without one, as files under DATA_DIR/mail. */
export const createMail = (options: MailOptions): Mail => {
  const {
    smtpUrl,
    from,
    folder,
    now,
    log,
    allowedCidrs = [],
    longestMs = conversationMs,
    measures = noMeasures,
  } = options
  const open = () => (smtpUrl ? createTransport(smtpOptions(smtpUrl)) : null)
  let smtp = open()
  const files = createTransport({ streamTransport: true, buffer: true, newline: 'windows' })
  const sender = addressOf(from)

  const compose = (message: Message) => {
    for (const address of [message.to, message.from?.address, message.replyTo]) {
      if (address != null && !oneAddress.test(address)) throw new Error('a mail address is not one address')
    }
    const address = message.from?.address ?? sender.address
    const name = message.from ? (message.from.name ?? '') : (message.fromName ?? sender.name)
    return {
      from: { name, address },
      to: { name: '', address: message.to },
      subject: message.subject,
      ...(message.text === null ? {} : { text: message.text }),
      date: now(),
      messageId: `<${message.id ?? randomBytes(16).toString('hex')}@${address.split('@')[1]}>`,
      // tells autoresponders not to reply
      headers: { 'Auto-Submitted': 'auto-generated', ...message.headers },
      ...(message.html ? { html: message.html } : {}),
      ...(message.replyTo ? { replyTo: message.replyTo } : {}),
      ...(message.returnPath ? { envelope: { from: message.returnPath, to: message.to } } : {}),
      ...(message.dkim
        ? {
            dkim: {
              domainName: message.dkim.domain,
              keySelector: message.dkim.selector,
              privateKey: message.dkim.privateKey,
            },
          }
        : {}),
      disableFileAccess: true,
      disableUrlAccess: true,
    }
  }

  const deliver = async (message: Message, by: SmtpConfig | null | undefined): Promise<void> => {
    const mail = compose(message)
    if (by) {
      const own = await openTransport(by, allowedCidrs, longestMs)
      await own.transport.sendMail(mail).finally(own.close)
      return
    }
    if (smtp) {
      const used = smtp
      await inTime(used.sendMail(mail), longestMs, () => {
        used.close()
        if (smtp === used) smtp = open()
      })
      return
    }
    const { message: raw } = (await files.sendMail(mail)) as unknown as { message: Buffer }
    const name = `${now().toISOString().replaceAll(':', '-')}-${message.to.replace(/[^A-Za-z0-9.@+_-]/g, '_').slice(0, 100)}`
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const file = await freeName(folder, name)
    // written under another name first, so that readers of the folder never see a partial file
    await writeFile(`${file}.part`, raw, { mode: 0o600 })
    await rename(`${file}.part`, file)
    log.info({ subject: message.subject, file }, 'mail written: SMTP_URL is not set')
  }

  return {
    // not to whom
    send: (message, by) =>
      spanned('send mail', 'client', { 'trellis.provider': by ? 'smtp' : smtp ? 'SMTP_URL' : 'folder' }, async () => {
        let outcome: DeliveryOutcome = 'failed'
        try {
          await deliver(message, by)
          outcome = 'delivered'
        } finally {
          measures.delivery('mail', outcome)
        }
      }),
    async verify(by) {
      const own = await openTransport(by, allowedCidrs, longestMs)
      await own.transport.verify().finally(own.close)
    },
    close() {
      smtp?.close()
    },
  }
}

/** Rejects when the work takes longer, after `give` has given up what it waits for. */
const inTime = async (work: Promise<unknown>, ms: number, give: () => void): Promise<void> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, fail) => {
    timer = setTimeout(() => {
      give()
      fail(new Error('the mail server took too long'))
    }, ms)
  })
  try {
    await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Connects to the server of SMTP_URL and signs in, without sending; throws what went wrong. */
export const checkSmtp = async (smtpUrl: string): Promise<void> => {
  const transport = createTransport(smtpOptions(smtpUrl))
  await transport.verify().finally(() => transport.close())
}

const usualPorts = [25, 465, 587, 2465, 2525, 2587]

/**
 * A connection to a project's own mail server. The SSRF filter of webhooks holds: every address of the host is public, or exempt, and the
 * connection goes to an address that was checked, so that a second resolution cannot lead elsewhere.
 */
const openTransport = async (by: SmtpConfig, allowed: readonly Cidr[], longestMs: number) => {
  const port = Number(by.port)
  const resolve = allowed.length > 0 ? resolveBySystem : resolveByDns()
  const found = isIP(by.host) ? [{ address: by.host }] : await resolve(by.host).catch(() => [])
  if (found.length === 0) throw new Error('the host of the mail server does not resolve')
  const isAllowed = ({ address }: { readonly address: string }) =>
    isExempt(address, allowed) || (usualPorts.includes(port) && isPublicAddress(address))
  if (!found.every(isAllowed))
    throw new Error('the mail server must be public, on port 25, 465, 587, 2465, 2525 or 2587')
  const secure = by.secure ?? port === 465
  const socket = new Socket()
  const timer = setTimeout(() => socket.destroy(new Error('the mail server took too long')), longestMs)
  const close = () => {
    clearTimeout(timer)
    transport.close()
    socket.destroy()
  }
  const transport = createTransport({
    host: found[0]?.address ?? '',
    port,
    secure,
    socket,
    // a password is never sent in the clear, except within the networks that an operator exempts
    requireTLS: !secure && Boolean(by.username) && !isExempt(found[0]?.address ?? '', allowed),
    tls: isIP(by.host) ? {} : { servername: by.host },
    ...(by.username ? { auth: { user: by.username, pass: by.password ?? '' } } : {}),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
  })
  return { transport, close }
}

/** A free file name, also for two mails to one address within a millisecond. */
const freeName = async (folder: string, name: string): Promise<string> => {
  for (let n = 0; ; n += 1) {
    const file = join(folder, n === 0 ? `${name}.eml` : `${name}-${n}.eml`)
    const taken = await writeFile(file, '', { flag: 'wx', mode: 0o600 }).then(
      () => false,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'EEXIST') return true
        throw error
      },
    )
    if (!taken) return file
  }
}

/** Parses `Name <address>` or an address alone; null for anything else. */
export const parseAddress = (text: string): { name: string; address: string } | null => {
  const [, name = '', inside] = /^([^<>]*?)\s*<([^<>]+)>$/.exec(text.trim()) ?? []
  const address = inside ?? text.trim()
  return oneAddress.test(address) ? { name: name.replace(/^"(.*)"$/, '$1'), address } : null
}

/** MAIL_FROM. */
const addressOf = (text: string): { name: string; address: string } => {
  const parsed = parseAddress(text)
  if (!parsed) throw new StartError('MAIL_FROM is no mail address: write name@host, or Name <name@host>')
  return parsed
}

const smtpOptions = (text: string) => {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    throw new StartError('SMTP_URL is no URL: write smtp://user:password@host:587 or smtps://user:password@host:465')
  }
  if (url.protocol !== 'smtp:' && url.protocol !== 'smtps:') {
    throw new StartError('SMTP_URL must begin with smtp:// or smtps://')
  }
  const secure = url.protocol === 'smtps:'
  const user = decodeURIComponent(url.username)
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(url.port || (secure ? 465 : 587)),
    secure,
    // a password is never sent in the clear: with a user, STARTTLS is required
    requireTLS: !secure && user !== '' && url.searchParams.get('tls') !== 'off',
    ignoreTLS: url.searchParams.get('tls') === 'off',
    ...(user ? { auth: { user, pass: decodeURIComponent(url.password) } } : {}),
    pool: true as const,
    maxConnections: 3,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
  }
}
