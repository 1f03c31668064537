/** What one check has found. `remedy` says what to do, where something is to be done. */
export type Finding = {
  readonly check: string
  readonly state: 'ok' | 'warning' | 'failed' | 'skipped'
  readonly found: string
  readonly remedy: string | null
}

export const ok = (check: string, found: string): Finding => ({ check, state: 'ok', found, remedy: null })
export const skip = (check: string, found: string): Finding => ({ check, state: 'skipped', found, remedy: null })
export const warn = (check: string, found: string, remedy: string): Finding => ({
  check,
  state: 'warning',
  found,
  remedy,
})
export const fail = (check: string, found: string, remedy: string): Finding => ({
  check,
  state: 'failed',
  found,
  remedy,
})

/** The first level that the value reaches decides. */
export const graded = (
  check: string,
  value: number,
  levels: { readonly failed: number; readonly warning: number },
  told: { readonly found: string; readonly remedy: string },
): Finding => {
  if (value >= levels.failed) return fail(check, told.found, told.remedy)
  if (value >= levels.warning) return warn(check, told.found, told.remedy)
  return ok(check, told.found)
}

export const span = (seconds: number): string => {
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`
  return `${Math.round(seconds / 86_400)} days`
}
