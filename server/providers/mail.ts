import { randomBytes } from 'node:crypto'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import type { Logger } from 'pino'
import { StartError } from '#server/errors.ts'

/** One message to one person. `from` and `replyTo` default to the installation's own. */
export type Message = {
  readonly to: string
  readonly subject: string
  readonly text: string
  readonly html?: string
  readonly from?: { readonly name?: string | null; readonly address: string } | null
  /** The display name for the installation's own address, used when `from` is absent. */
  readonly fromName?: string | null
  readonly replyTo?: string | null
  /** The Message-ID is derived from this, so that receivers can deduplicate a mail that is sent again after a crash. */
  readonly id?: string
}

export type Mail = {
  /** Resolves when the server has accepted the message; otherwise throws the server's response. Codes and links are never logged. */
  send(message: Message): Promise<void>
  close(): void
}

export type MailOptions = {
  readonly smtpUrl: string | undefined
  readonly from: string
  /** Where messages are written without SMTP, each as an .eml file. */
  readonly folder: string
  readonly now: () => Date
  readonly log: Logger
}

// header injection: an address is one token; a line break or a second recipient in it could add headers
const oneAddress = /^[^\s\p{Cc}@,;<>()"\\]+@[^\s\p{Cc}@,;<>()"\\:[\]]+$/u
const timeoutMs = 20_000

/** Mail by SMTP_URL, or, without one, as files under DATA_DIR/mail. */
export const createMail = ({ smtpUrl, from, folder, now, log }: MailOptions): Mail => {
  const smtp = smtpUrl ? createTransport(smtpOptions(smtpUrl)) : null
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
      text: message.text,
      date: now(),
      messageId: `<${message.id ?? randomBytes(16).toString('hex')}@${address.split('@')[1]}>`,
      // tells autoresponders not to reply
      headers: { 'Auto-Submitted': 'auto-generated' },
      ...(message.html ? { html: message.html } : {}),
      ...(message.replyTo ? { replyTo: message.replyTo } : {}),
      disableFileAccess: true,
      disableUrlAccess: true,
    }
  }

  return {
    async send(message) {
      const mail = compose(message)
      if (smtp) {
        await smtp.sendMail(mail)
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
    },
    close() {
      smtp?.close()
    },
  }
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

/** Parses `Name <address>` or an address alone, the two forms of MAIL_FROM. */
const addressOf = (text: string): { name: string; address: string } => {
  const [, name = '', inside] = /^(.*?)\s*<([^<>]+)>$/.exec(text.trim()) ?? []
  const address = inside ?? text.trim()
  if (!oneAddress.test(address))
    throw new StartError('MAIL_FROM is no mail address: write name@host, or Name <name@host>')
  return { name: name.replace(/^"(.*)"$/, '$1'), address }
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
