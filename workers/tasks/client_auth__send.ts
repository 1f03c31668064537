import { dataOf } from '#server/database/database.ts'
import { sealPurpose } from '#server/http/one_time_codes.ts'
import { type Sender, type SignInMessage, signInMail, signInText } from '#server/providers/sign_in_messages.ts'
import { type SmsConfig, sendSms } from '#server/providers/sms.ts'
import { type OutboxRow, outboxTask, type TenantContext } from '#workers/task.ts'

type Sealed = Omit<SignInMessage, 'secret'> & { sealed: string; provider_sealed: string | null }
type Carry = (message: SignInMessage, sender: Sender, sealed: Sealed) => Promise<void>

/**
 * Sends what a row of app.user_codes holds, unless it was used, replaced or is too old by now. Twice is the same code under the
 * same message id. What the transport refuses is tried again for as long as the code is good.
 */
const send = async ({ services, projectId, call }: TenantContext, row: OutboxRow, carry: Carry): Promise<null> => {
  const sealed = dataOf<Sealed | null>(await call('auth_message_begin', { code_id: row.key }))
  if (!sealed) return null
  const sender = dataOf<Sender | null>(
    await services.database.call(
      services.control,
      'control_worker',
      { caller: 'worker' },
      'sign_in_settings',
      { project_id: projectId },
      { readOnly: true },
    ),
  )
  if (!sender) return null
  const secret = services.secrets.decrypt(sealPurpose(projectId, sealed.id), sealed.sealed)
  await carry({ ...sealed, secret }, sender, sealed)
  await call('auth_message_sent', { code_id: sealed.id })
  return null
}

/** A code or a link by mail. */
export const clientAuthMail = outboxTask(
  'client_auth__mail',
  (context, row) => send(context, row, (message, sender) => context.services.mail.send(signInMail(message, sender))),
  { urgency: 'prompt' },
)

/** A code as a text message, by the project's own provider; once that is disconnected, nothing. */
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
