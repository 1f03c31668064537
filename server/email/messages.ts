/** Sending single messages. */
import { isComped } from '#server/ai/calls.ts'
import { checkRecipients, checkSenders, type Recipient } from '#server/email/senders.ts'
import { idempotency } from '#server/http/idempotency.ts'
import { acceptedArray } from '#server/http/languages.ts'
import type { HandlerContext } from '#server/http/route.ts'

export const send = async (context: HandlerContext) => {
  const message = context.body as Recipient
  await checkSenders(context, [message.from])
  await checkRecipients(context, [message])
  return context.call('email_send', {
    message: JSON.stringify(message),
    accepted: acceptedArray(context.request),
    is_comped: isComped(context),
    ...idempotency(context),
  })
}

export const sendBatch = async (context: HandlerContext) => {
  const { messages } = context.body as { messages: Recipient[] }
  await checkSenders(
    context,
    messages.map(({ from }) => from),
  )
  await checkRecipients(context, messages)
  return context.call('email_send_batch', {
    messages: JSON.stringify(messages),
    accepted: acceptedArray(context.request),
    is_comped: isComped(context),
  })
}
