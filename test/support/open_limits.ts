/** Servers of tests let accounts that nobody has verified do what a verified one may: a test of these limits sets them. */
export const openLimits = {
  SANDBOX_PROJECTS: '100000',
  SANDBOX_INVITES: 'true',
  SANDBOX_MAIL: 'any',
  SANDBOX_MAIL_PER_DAY: '100000',
  ACCOUNT_MAIL_PER_DAY: '100000',
  ACCOUNT_PROJECTS: '100000',
  ACCOUNT_PROJECTS_PER_DAY: '100000',
}
