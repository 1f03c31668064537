/** Wakes one waiter. A signal that comes while nobody waits is kept until the next `listen` or `forget`. */
export type WakeSignal = {
  notify(): void
  /** Whether a signal came since the last `listen` or `forget`. */
  readonly wasSignalled: boolean
  /** Forgets earlier signals; resolves at the next. */
  listen(): Promise<void>
  /** Forgets earlier signals; a waiter keeps waiting. */
  forget(): void
}

export const createWakeSignal = (): WakeSignal => {
  let wasSignalled = false
  let wake: () => void = () => undefined
  let next: Promise<void> = Promise.resolve()
  const listen = () => {
    wasSignalled = false
    next = new Promise((resolve) => {
      wake = resolve
    })
    return next
  }
  return {
    notify() {
      wasSignalled = true
      wake()
    },
    get wasSignalled() {
      return wasSignalled
    },
    listen,
    forget() {
      wasSignalled = false
    },
  }
}
