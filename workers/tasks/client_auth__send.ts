import { sealPurpose } from '#server/accounts/one_time_codes.ts'
import { dataOf } from '#server/database/database.ts'
import { takeMail } from '#server/providers/mail_allowance.ts'
import { type ProjectSender, senderOf } from '#server/providers/project_mail.ts'
import {
  type Content,
  type Marks,
  type SignInMessage,
  secretMarks,
  signInMail,
  signInText,
} from '#server/providers/sign_in_messages.ts'
import { type SmsConfig, sendSms } from '#server/providers/sms.ts'
import { type OutboxRow, outboxTask, type TenantContext } from '#workers/task.ts'

type Sealed = Omit<SignInMessage, 'secret'> & {
  sealed: string
  content: Content | null
  provider_sealed: string | null
}
type Carry = (message: SignInMessage, sender: ProjectSender, sealed: Sealed, marks: Marks) => Promise<void>

/**
 * Sends the code of a row of app.user_codes, unless the code is used, replaced or expired. A second run sends the same code with the same
 * message id. A message that the transport refuses is retried for as long as the code is valid.
 */
const send = async ({ services, projectId, call }: TenantContext, row: OutboxRow, carry: Carry): Promise<null> => {
  const sender = dataOf<ProjectSender | null>(
    await services.database.call(
      services.control,
      'control_worker',
      { caller: 'worker' },
      'mail_sender',
      { project_id: projectId },
      { readOnly: true },
    ),
  )
  if (!sender) return null
  const marks = secretMarks()
  const sealed = dataOf<Sealed | null>(
    await call('auth_message_begin', {
      code_id: row.key,
      brand: sender.brand,
      has_link: sender.magic_link_redirect_url !== null,
      marks: JSON.stringify(marks),
    }),
  )
  if (!sealed) return null
  const secret = services.secrets.decrypt(sealPurpose(projectId, sealed.id), sealed.sealed)
  await carry({ ...sealed, secret }, sender, sealed, marks)
  await call('auth_message_sent', { code_id: sealed.id })
  return null
}

/** Sends a sign-in code or link by mail. */
export const clientAuthMail = outboxTask(
  'client_auth__mail',
  (context, row) =>
    send(context, row, async (message, sender, { content }, marks) => {
      if (!content) return
      const { log, mail } = context.services
      if (sender.from_email === null) {
        const { projectId } = context
        const allowance = await takeMail(context.services, { projectId, to: message.address, isSignIn: true })
        // whoever asked is told nothing; the code can be asked for again
        if (allowance.kind !== 'allowed')
          return log.warn(
            { project: projectId },
            'a sign-in mail was not sent: its account has sent its messages of the day',
          )
        if (allowance.isSandbox && content.is_own)
          return log.warn(
            { project: projectId },
            'a sign-in mail was not sent: its template waits for a verified owner',
          )
      }
      await mail.send({
        ...senderOf(context.services, context.projectId, sender, sender.brand),
        ...signInMail(message, content, marks, sender.magic_link_redirect_url),
      })
    }),
  { urgency: 'prompt' },
)

/** Sends a sign-in code as a text message through the project's own provider; sends nothing once the provider is disconnected. */
export const clientAuthSms = outboxTask(
  'client_auth__sms',
  (context, row) =>
    send(context, row, async (message, sender, { provider_sealed }) => {
      if (!provider_sealed) return
      const { secrets, outbound } = context.services
      const config = JSON.parse(secrets.decrypt(`integration ${context.projectId} sms`, provider_sealed)) as SmsConfig
      await sendSms(outbound, config, { id: message.id, to: message.address, text: signInText(message, sender.brand) })
    }),
  { urgency: 'prompt' },
)
