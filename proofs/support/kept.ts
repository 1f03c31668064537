import { endServer, type WorkerProcess } from '#test/support/process.ts'

/** A program that is started again whenever it ends, until told to stop. */
export const keep = async (start: () => Promise<WorkerProcess>) => {
  let current = await start()
  let kills = 0
  let isStopping = false
  const watch = async () => {
    while (!isStopping) {
      await current.ended
      if (!isStopping) current = await start()
    }
  }
  const watching = watch()
  return {
    /** With -9; false when it has ended already. */
    kill(): boolean {
      if (current.child.exitCode !== null || current.child.signalCode !== null) return false
      current.child.kill('SIGKILL')
      kills += 1
      return true
    },
    kills: () => kills,
    async stop() {
      isStopping = true
      await endServer(current)
      await watching
    },
  }
}
