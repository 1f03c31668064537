/** Tells one waiter that something new has come; a ring while nobody waits is kept until the next look. */
export type Bell = {
  ring(): void
  /** Whether it rang since the last `listen`. */
  readonly hasRung: boolean
  /** Forgets earlier rings; resolves at the next. */
  listen(): Promise<void>
}

export const createBell = (): Bell => {
  let hasRung = false
  let wake: () => void = () => undefined
  let next: Promise<void> = Promise.resolve()
  const listen = () => {
    hasRung = false
    next = new Promise((resolve) => {
      wake = resolve
    })
    return next
  }
  return {
    ring() {
      hasRung = true
      wake()
    },
    get hasRung() {
      return hasRung
    },
    listen,
  }
}
