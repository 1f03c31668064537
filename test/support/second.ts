import type { Logger } from 'pino'
import { assemble, type Running } from '#server/start.ts'
import { type Client, createClient, type Harness } from '#test/support/harness.ts'
import { cheapPasswords } from '#test/support/server.ts'

export type Second = { readonly running: Running; as(headers?: Record<string, string>): Client }

/** Another server on the harness's databases and clock, with memory of its own; `log` takes what it writes. */
export const startSecond = async (harness: Harness, log?: Logger): Promise<Second> => {
  const { services } = harness.running
  const { config, secrets, fleet, control } = services
  const postgres = { dsn: '', socketDirectory: null, stop: async () => undefined }
  const running = await assemble(
    { config, log: log ?? services.log, secrets, postgres },
    { programs: fleet.programs, cluster: control.cluster },
    { clock: harness.now, passwordCost: cheapPasswords },
  )
  const port = await running.listen()
  harness.beforeStop(running.stop)
  const client = createClient(`http://127.0.0.1:${port}`)
  return { running, as: (headers = {}) => client(headers) }
}
