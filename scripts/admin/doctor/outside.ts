import { randomUUID } from 'node:crypto'
import { isIP } from 'node:net'
import { connect } from 'node:tls'
import { createMedia, type Media } from '#server/media/media.ts'
import { checkSmtp } from '#server/providers/mail.ts'
import type { Flags, Run } from '../arguments.ts'
import { type Finding, fail, graded, ok, skip, warn } from './findings.ts'
import { backups } from './machine.ts'

const patienceMs = 10_000

/** Rejects when a peer says nothing for long: a command ends, whatever a peer does. */
const within = <T>(work: Promise<T>): Promise<T> => {
  const late = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error(`no answer within ${patienceMs / 1000} s`)), patienceMs).unref()
  })
  return Promise.race([work, late])
}

/** When the certificate of PUBLIC_URL ends, as a client sees it. */
const certificate = async (url: string | undefined): Promise<Finding> => {
  const check = 'certificate'
  if (!url) return warn(check, 'PUBLIC_URL is not set: links and upload URLs name this machine', 'Set PUBLIC_URL.')
  const { protocol, hostname, port } = new URL(url)
  if (protocol !== 'https:')
    return warn(
      check,
      `PUBLIC_URL is ${protocol}//: nothing is encrypted`,
      'Put a proxy with TLS in front: deploy/compose.yaml has one.',
    )
  const socket = connect({
    host: hostname,
    port: Number(port || 443),
    ...(isIP(hostname) ? {} : { servername: hostname }),
  })
  try {
    await within(
      new Promise<void>((resolve, reject) => {
        socket.once('secureConnect', resolve)
        socket.once('error', reject)
      }),
    )
    const days = (Date.parse(socket.getPeerCertificate().valid_to) - Date.now()) / 86_400_000
    return graded(
      check,
      -days,
      { failed: -3, warning: -14 },
      {
        found: `that of ${hostname} is valid for ${days.toFixed(0)} more days`,
        remedy: 'See why your proxy does not renew it.',
      },
    )
  } catch (error) {
    return fail(
      check,
      `${hostname} cannot be reached with TLS: ${(error as Error).message}`,
      'See whether the proxy runs, and its certificate is for this name.',
    )
  } finally {
    socket.destroy()
  }
}

const proxy = ({ foundation: { config } }: Run): Finding => {
  const isPublic = config.PUBLIC_URL?.startsWith('https:') === true
  if (config.TRUST_PROXY === true)
    return warn(
      'TRUST_PROXY',
      'every client may say which address it has, so rate limits bind nobody',
      'Set it to the number of proxies in front of the server.',
    )
  if (config.TRUST_PROXY === false && isPublic)
    return fail(
      'TRUST_PROXY',
      'PUBLIC_URL is https and no proxy is trusted: all clients have the address of the proxy, and share its rate limits',
      'Set TRUST_PROXY to the number of proxies in front of the server: 1 for one.',
    )
  return ok('TRUST_PROXY', String(config.TRUST_PROXY))
}

const mail = async ({ foundation: { config } }: Run): Promise<Finding> => {
  if (!config.SMTP_URL)
    return warn('mail', 'no mail is sent: it is written to DATA_DIR/mail', 'Set SMTP_URL and MAIL_FROM.')
  try {
    await within(checkSmtp(config.SMTP_URL))
    return ok('mail', `${new URL(config.SMTP_URL).hostname} takes our sign-in`)
  } catch (error) {
    return fail(
      'mail',
      `the server of SMTP_URL refuses us: ${(error as Error).message}`,
      'Check its address and password; sign-in codes wait until it answers.',
    )
  }
}

const storage = async ({ foundation: { config, secrets, log } }: Run): Promise<Finding> => {
  const where = config.STORAGE_URL ? 'the bucket of STORAGE_URL' : 'DATA_DIR/media'
  let media: Media | undefined
  try {
    media = createMedia({ config, secrets, log, publicUrl: () => config.PUBLIC_URL ?? '', now: () => new Date() })
    // of no project: what counts is that the storage answers our key
    await within(media.storage.list(randomUUID())[Symbol.asyncIterator]().next())
    return ok('media', `${where} can be read`)
  } catch (error) {
    const remedy = 'Check STORAGE_URL, its key and the rights of the key.'
    return fail('media', `${where} cannot be read: ${(error as Error).message}`, remedy)
  } finally {
    await media?.close()
  }
}

export const outsideChecks = async (run: Run, { backups: folder }: Flags): Promise<Finding[]> => {
  const { config } = run.foundation
  return [
    await certificate(config.PUBLIC_URL),
    proxy(run),
    await mail(run),
    await storage(run),
    await backups(folder ?? (config.BACKUP_TO?.startsWith('s3:') ? undefined : config.BACKUP_TO), Date.now()),
    config.SIGNUP_MODE === 'open' && config.PUBLIC_URL
      ? warn(
          'sign-up',
          'everybody may sign up as a developer and create projects',
          'SIGNUP_MODE=invite, unless that is what you want.',
        )
      : skip('sign-up', `SIGNUP_MODE is ${config.SIGNUP_MODE}`),
  ]
}
