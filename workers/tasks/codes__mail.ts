import { dataOf } from '#server/database/database.ts'
import { codeOf, developerCode } from '#server/derived_codes.ts'
import { job } from '#workers/task.ts'

const text = (code: string) => `Your code is ${code}

It signs you in once, within 10 minutes of asking for it. Asking again makes it useless.
Nobody needs it but you: if you did not ask for it, do nothing.
`

/** Sends a sign-in code. An address without an account, or a code that is used, replaced or expired, gets no mail; a second run sends the same mail again. */
export const codesMail = job(
  'codes__mail',
  async ({ database, control, secrets, mail }, { code_id = '' }) => {
    const reply = await database.call(control, 'control_worker', { caller: 'worker' }, 'code_mail', { code_id })
    const found = dataOf<{ email: string } | null>(reply)
    if (!found) return
    await mail.send({
      to: found.email,
      // the code is in the text alone: subjects are logged
      subject: 'Your sign-in code',
      text: text(codeOf(secrets, developerCode, code_id)),
      id: `code-${code_id}`,
    })
  },
  'prompt',
)
