import { dataOf } from '#server/database/database.ts'
import type { SmtpConfig } from '#server/providers/mail.ts'
import { takeMail } from '#server/providers/mail_allowance.ts'
import {
  integrationPurpose,
  type ProjectMessage,
  type ProjectSender,
  projectMail,
  unsubscribeMark,
} from '#server/providers/project_mail.ts'
import { outboxTask } from '#workers/task.ts'

type Begun = ProjectMessage & { readonly attempts: number; readonly smtp_sealed: string | null }
type SmtpError = Error & { readonly responseCode?: number; readonly code?: string }

// the connection broke after it was made: the server may have taken the message
const broken = ['ECONNECTION', 'ETIMEDOUT', 'ESOCKET']
const neverMade = /ECONNREFUSED|ENOTFOUND|EHOSTUNREACH|ENETUNREACH|Connection timeout|does not resolve|must be public/

/** A refusal of the message or its recipient is final; one of the password, and every 4xx, is not. RFC 5321, 4.2.1. */
const isFinal = ({ responseCode = 0, code }: SmtpError) => responseCode >= 550 && responseCode < 560 && code !== 'EAUTH'

/** Whether nobody knows if the message was sent. Only messages that are not transactional fail for it. */
const isUncertain = (error: SmtpError) =>
  error.responseCode === undefined && broken.includes(error.code ?? '') && !neverMade.test(error.message)

const outcomeOf = (error: SmtpError, category: string) => {
  if (isFinal(error)) return { outcome: 'failed', detail: error.message }
  if (isUncertain(error) && category !== 'transactional')
    return { outcome: 'failed', detail: `OUTCOME_UNKNOWN: ${error.message}` }
  return { outcome: 'retry', detail: error.message }
}

const notVerified = {
  outcome: 'failed',
  detail: 'EMAIL_NOT_VERIFIED: no owner of the project has verified their address',
}

/** Makes one attempt of a message. The sender is read first, so that an attempt is noted only when the mail server is called next. */
export const emailSend = outboxTask('email__send', async ({ services, projectId, call }, row) => {
  const { database, control, secrets, mail } = services
  const found = dataOf<{ from: string | null; to: string; has_own_server: boolean } | null>(
    await call('email_message_from', { message_id: row.key }),
  )
  if (!found) return null
  const sender = dataOf<ProjectSender | null>(
    await database.call(control, 'control_worker', { caller: 'worker' }, 'mail_sender', {
      project_id: projectId,
      from_email: found.from,
    }),
  )
  if (!sender) return null
  const allowance =
    sender.from_email !== null || found.has_own_server
      ? null
      : await takeMail(services, { projectId, to: found.to, isSignIn: false })
  if (allowance?.kind === 'later') return allowance.at
  const mark = unsubscribeMark()
  const begun = await call('email_attempt_begin', { message_id: row.key, unsubscribe_mark: mark })
  const message = dataOf<Begun | null>(begun)
  if (!message) return null
  const result = await (async () => {
    if (allowance?.kind === 'refused') return notVerified
    const by = message.smtp_sealed
      ? (JSON.parse(secrets.decrypt(integrationPurpose(projectId, 'smtp'), message.smtp_sealed)) as SmtpConfig)
      : null
    await mail.send(projectMail(services, projectId, sender, message, mark, by !== null), by)
    return { outcome: 'sent', detail: null }
  })().catch((error: SmtpError) => outcomeOf(error, message.category))
  const { next_attempt_at } = dataOf<{ next_attempt_at: string | null }>(
    await call('email_attempt_end', { message_id: row.key, attempt: message.attempts, ...result }),
  )
  return next_attempt_at ? new Date(next_attempt_at) : null
})
