import cluster from 'node:cluster'
import { once } from 'node:events'
import { existingHome } from '#fleet/embedded/folder.ts'
import { startPostgres } from '#fleet/postgres.ts'
import { banner } from '#server/banner.ts'
import { type Config, readConfig } from '#server/config.ts'
import { StartError } from '#server/errors.ts'
import { requireFreePort } from '#server/http/port.ts'
import { announce, createLog } from '#server/log.ts'
import { stopOnSignals } from '#server/signals.ts'

const [major = 0] = process.versions.node.split('.').map(Number)

/** Everything in one process: databases, HTTP, workers; more server processes with WEB_CONCURRENCY. */
const main = async (): Promise<void> => {
  if (major < 24) throw new StartError(`Trellis needs Node 24 and this is ${process.version}. Start it with: npm start`)
  const config = readConfig()
  const log = createLog(config)
  const began = performance.now()
  const isFirst = config.DATABASE_URL === undefined && !(await existingHome(config.DATA_DIR))
  await requireFreePort(config.HOST, config.PORT)
  const server = readServer()
  server.catch(() => undefined)
  const foundation = await startPostgres(config, log)
  const { running, prepared } = await server
    .then(({ prepareAndAssemble }) => prepareAndAssemble(foundation))
    .catch(async (error) => {
      await foundation.postgres.stop()
      throw error
    })
  const isAlone = config.WEB_CONCURRENCY === 1
  stopOnSignals({
    async stop() {
      // a template that is being built is finished: the next start needs it
      await Promise.all([stopMembers(), running.stop(), prepared.catch(() => undefined)])
    },
    endNow() {
      for (const member of members()) member.process.kill('SIGKILL')
      running.endNow()
    },
    stopPostgres: () => foundation.postgres.stop(),
    seconds: config.SHUTDOWN_SECONDS,
  })
  try {
    // members wait for the lock under which the template is built, and cannot say what is wrong with it
    if (!isAlone) await prepared
    const port = isAlone ? await running.listen() : await forkServers(config, foundation.postgres)
    const url = config.PUBLIC_URL ?? `http://${config.HOST}:${port}`
    const milliseconds = Math.round(performance.now() - began)
    const data = config.DATABASE_URL === undefined ? config.DATA_DIR : 'on the server of DATABASE_URL'
    const places = {
      api: `${url}/v1`,
      console: `${url}/console`,
      reference: `${url}/docs`,
      health: `${url}/health`,
      data,
    }
    announce('Trellis is running', { ...places, milliseconds }, banner(places, milliseconds, isFirst ? url : null))
    await prepared
    if (config.WORKER === 'inline' && !isStopping) await running.work()
  } catch (error) {
    // what a stop has cut off is no failure of the start
    if (isStopping) return
    await running.stop().catch(() => undefined)
    await foundation.postgres.stop()
    throw error
  }
}

/** The modules of the server and its routes, read while Postgres starts: initdb and they keep one core each. An error is thrown where they are used. */
const readServer = async () => {
  const [server, { loadAreas }] = await Promise.all([import('#server/start.ts'), import('#server/http/areas.ts')])
  loadAreas().catch(() => undefined)
  return server
}

/** Server processes share the port; the first process keeps Postgres and the workers. */
const forkServers = async (
  { WEB_CONCURRENCY, METRICS_PORT }: Config,
  postgres: { dsn: string; socketDirectory: string | null },
): Promise<number> => {
  cluster.setupPrimary({ exec: new URL('./member.ts', import.meta.url).pathname })
  const numbers = new Map<number, number>()
  const start = (number: number) => {
    // each exports its own metrics, on the ports after that of the first process
    const metrics = METRICS_PORT ? { METRICS_PORT: `${METRICS_PORT + number}` } : {}
    const member = cluster.fork({ TRELLIS_MEMBER: JSON.stringify(postgres), ...metrics })
    numbers.set(member.id, number)
    return member
  }
  const listening = Promise.all(
    Array.from({ length: WEB_CONCURRENCY }, (_, index) => start(index + 1)).map(
      (member) =>
        new Promise<number>((resolve, reject) => {
          member.on('listening', ({ port }) => {
            // a member listens for the API and for metrics
            if (!METRICS_PORT || port !== METRICS_PORT + (numbers.get(member.id) ?? 0)) resolve(port)
          })
          member.once('exit', (code) =>
            reject(new StartError(`A server process ended at its start with code ${code}.`)),
          )
        }),
    ),
  )
  const ports = await listening
  cluster.on('exit', ({ id }) => {
    const number = numbers.get(id) ?? 1
    numbers.delete(id)
    if (!isStopping) start(number)
  })
  return ports[0] ?? 0
}

let isStopping = false
const members = () => Object.values(cluster.workers ?? {}).filter((member) => member !== undefined)

/**
 * Asks the server processes to stop, and waits until each has finished its requests and exited. Not by cluster.disconnect, of
 * which a member hears only when its last connection is closed, and clients keep theirs open.
 */
const stopMembers = async (): Promise<void> => {
  isStopping = true
  const ends = members().map((member) => once(member, 'exit'))
  for (const member of members()) member.send('stop', () => undefined)
  await Promise.all(ends)
}

const explain = (error: unknown): string => {
  if (error instanceof StartError) return error.message
  const { code, message, stack } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE')
    return `${message}\nAnother program listens there. Stop it, or choose another port: PORT=4001 npm start`
  if (code === 'EACCES') return `${message}\nThis port or folder is not yours. Choose another PORT or DATA_DIR.`
  if (code === 'ENOSPC') return `The disk is full: ${message}`
  if (code === 'ECONNREFUSED' || code === 'ENOTFOUND')
    return `The Postgres server of DATABASE_URL cannot be reached: ${message}`
  if (code === '3D000' || code === '42501')
    return `DATABASE_URL names a database that is there, such as postgres, and a role that may create databases and roles: ${message}`
  if (code === '28P01' || code === '28000') return `The Postgres server of DATABASE_URL refuses this role: ${message}`
  return stack ?? message
}

main().catch((error: unknown) => {
  process.stderr.write(`\nTrellis cannot start.\n${explain(error)}\n`)
  process.exit(1)
})
