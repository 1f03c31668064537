// A process of its own for each side of a measurement, so that its CPU and its pauses are its own.
import { fork } from 'node:child_process'
import { once } from 'node:events'

export type Child = {
  readonly pid: number
  /** Sends a command and waits for what it came to. */
  ask<T>(command: object): Promise<T>
  end(): Promise<void>
}

type Answer = { readonly id: number; readonly result?: unknown; readonly error?: string }

/** Starts a script of this folder. Secrets travel in its first command, never in its arguments. */
export const startChild = (script: string): Child => {
  const child = fork(new URL(script, import.meta.url), { serialization: 'advanced' })
  const waiting = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>()
  let last = 0
  child.on('message', ({ id, result, error }: Answer) => {
    const waiter = waiting.get(id)
    waiting.delete(id)
    if (error === undefined) waiter?.resolve(result as never)
    else waiter?.reject(new Error(`${script}: ${error}`))
  })
  child.on('exit', (code) => {
    for (const { reject } of waiting.values()) reject(new Error(`${script} ended with code ${code}`))
  })
  return {
    pid: child.pid ?? 0,
    ask(command) {
      last += 1
      const id = last
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject })
        child.send({ id, command })
      })
    },
    async end() {
      if (child.exitCode !== null) return
      const ended = once(child, 'exit')
      child.disconnect()
      await ended
    },
  }
}

/** The other end: answers each command until the parent lets go. */
export const answer = <Command>(work: (command: Command) => Promise<unknown>): void => {
  process.on('message', ({ id, command }: { id: number; command: Command }) => {
    work(command).then(
      (result) => process.send?.({ id, result }),
      (error: Error) => process.send?.({ id, error: error.stack ?? error.message }),
    )
  })
  process.on('disconnect', () => process.exit(0))
}
