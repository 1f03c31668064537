import { dataOf } from '#server/database/database.ts'
import type { Services } from '#server/services.ts'

/** Whether mail leaves the machine at all: without a mail server it stays in DATA_DIR, and needs no bounds. */
const leaves = ({ config }: Pick<Services, 'config'>) => config.SMTP_URL !== undefined

/** Whether a project of this kind may write to everybody in the installation's name. */
export const isKeptInside = (services: Pick<Services, 'config'>, { isSandbox }: { isSandbox: boolean }): boolean =>
  isSandbox && leaves(services) && services.config.SANDBOX_MAIL === 'own'

export type Allowance =
  | { readonly kind: 'allowed'; readonly isSandbox: boolean }
  | { readonly kind: 'refused' }
  | { readonly kind: 'later'; readonly at: Date }

/** Asks control before the installation sends a message of a project in its own name, and counts it. */
export const takeMail = async (
  services: Pick<Services, 'config' | 'control' | 'database' | 'now'>,
  { projectId, to, isSignIn }: { projectId: string; to: string; isSignIn: boolean },
): Promise<Allowance> => {
  if (!leaves(services)) return { kind: 'allowed', isSandbox: false }
  const { SANDBOX_MAIL, SANDBOX_MAIL_PER_DAY, ACCOUNT_MAIL_PER_DAY } = services.config
  const limits = { sandbox_to: SANDBOX_MAIL, sandbox_per_day: SANDBOX_MAIL_PER_DAY, per_day: ACCOUNT_MAIL_PER_DAY }
  const args = { project_id: projectId, address: to, is_sign_in: isSignIn, limits }
  const taken = dataOf<{ is_sandbox: boolean; is_refused: boolean; wait: number | null }>(
    await services.database.call(services.control, 'control_worker', { caller: 'worker' }, 'mail_take', args),
  )
  if (taken.is_refused) return { kind: 'refused' }
  if (taken.wait === null) return { kind: 'allowed', isSandbox: taken.is_sandbox && SANDBOX_MAIL === 'own' }
  return { kind: 'later', at: new Date(services.now().getTime() + taken.wait * 1000) }
}
