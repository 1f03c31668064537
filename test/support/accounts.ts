import { expect } from 'vitest'
import { createInvite } from '#server/accounts/invite_codes.ts'
import type { Services } from '#server/services.ts'
import type { Answer, Client, Developer, Harness } from '#test/support/harness.ts'
import type { MailServer } from '#test/support/smtp.ts'
import { meetingBehind } from '#test/support/transaction.ts'
import { loadTasks } from '#workers/task.ts'

/** Invite codes, as npm run admin makes them. */
export const inviteCodes = async (harness: Harness, count = 1, days = 30): Promise<string[]> => {
  const invites = Array.from({ length: count }, createInvite)
  const codes = invites.map(({ code_hash, code_hint }) => ({ code_hash, code_hint }))
  // under the clock of the test, which expiry goes by
  await harness.control(
    `select set_config('app.clock', '${harness.now().toISOString()}', false), internal.operator_invites_create('${JSON.stringify(codes)}', ${days}), set_config('app.clock', '', false)`,
  )
  return invites.map(({ code }) => code)
}

export type Queued = { readonly task: string; readonly payload: Record<string, string>; readonly attempts: number }

/** Jobs that wait in the control database, oldest first. */
export const queuedJobs = (harness: Harness, task: string): Promise<Queued[]> =>
  harness.control(
    `select t.identifier as task, j.payload, j.attempts from graphile_worker._private_jobs j
       join graphile_worker._private_tasks t on t.id = j.task_id where t.identifier = $1 order by j.id`,
    [task],
  )

export const runJob = async (services: Services, { task, payload }: Queued): Promise<void> => {
  const { jobs } = await loadTasks()
  await jobs.find(({ name }) => name === task)?.run(services, payload)
}

/** Runs every waiting job of a task, as a worker would, and clears them. */
export const runJobs = async (harness: Harness, task: string): Promise<void> => {
  for (const queued of await queuedJobs(harness, task)) await runJob(harness.running.services, queued)
  await harness.control(
    `delete from graphile_worker._private_jobs j using graphile_worker._private_tasks t where t.id = j.task_id and t.identifier = $1`,
    [task],
  )
}

/** Asks for a code and reads it from the mail. */
export const mailedCode = async (harness: Harness, mail: MailServer, email: string, as: string = email) => {
  expect((await harness.anyone.post('/auth/developer/otp/request', { email: as })).status).toBe(200)
  await runJobs(harness, 'codes__mail')
  const code = /\b(\d{6})\b/.exec(mail.to(email).at(-1)?.text ?? '')?.[1]
  if (!code) throw new Error(`no code came to ${email}`)
  return code
}

/** Six digits that are not these. */
export const otherThan = (code: string) => String((Number(code) + 1) % 1_000_000).padStart(6, '0')

export const personalToken = async (owner: Client, wanted: object = {}): Promise<Answer['data']> => {
  const { status, data, text } = await owner.post('/admin/tokens', { name: 'a token', ...wanted })
  expect(status, text).toBe(201)
  return data
}

export const withBearer = (client: Client, text: string): Client => client.with({ authorization: `Bearer ${text}` })

/** A developer whose provisioning is as given. */
export const developerWith = async (harness: Harness, provisioning: 'on' | 'off' | 'revoked'): Promise<Developer> => {
  const developer = await harness.developer()
  await harness.control('select internal.operator_developer_set($1, $2)', [developer.email, provisioning])
  return developer
}

/** Calls to the control database that really meet at a table: each waits before its first change of it, and all go on together. */
export const meetingAt = <T>(harness: Harness, table: string, calls: () => readonly Promise<T>[]): Promise<T[]> =>
  meetingBehind(harness.running.services.control.database, `lock table ${table} in share mode`, calls)
