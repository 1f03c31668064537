// Where the time of a Node process goes, as its own profiler tells it.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Cluster } from '#server/database/cluster.ts'
import type { Frame, Profile } from './caller.ts'
import { asAdmin } from './installation.ts'
import { figure, table } from './numbers.ts'

/** Environment of a Node process that can be profiled while it runs. */
export const profilable = { NODE_OPTIONS: '--inspect=127.0.0.1:0' }

/** Profiles a process while `work` goes on; `output` is what it has written, with the address of its inspector. */
export const profileDuring = async (output: string, work: () => Promise<unknown>): Promise<Profile> => {
  const [address = ''] = /ws:\/\/\S+/.exec(output) ?? []
  const socket = new WebSocket(address)
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve)
    socket.addEventListener('error', () => reject(new Error(`no inspector answers at ${address}`)))
  })
  let last = 0
  const send = (method: string, params: object = {}): Promise<unknown> => {
    last += 1
    const id = last
    return new Promise((resolve) => {
      const receive = ({ data }: MessageEvent) => {
        const message = JSON.parse(String(data)) as { id: number; result: unknown }
        if (message.id !== id) return
        socket.removeEventListener('message', receive)
        resolve(message.result)
      }
      socket.addEventListener('message', receive)
      socket.send(JSON.stringify({ id, method, params }))
    })
  }
  await send('Profiler.enable')
  await send('Profiler.setSamplingInterval', { interval: 200 })
  await send('Profiler.start')
  await work()
  const { profile } = (await send('Profiler.stop')) as { profile: Profile }
  socket.close()
  return profile
}

/** The npm package, the file of ours, or the part of Node that a function belongs to. */
const homeOf = ({ url, functionName }: Frame): string => {
  if (functionName.startsWith('(')) return functionName
  const inPackage = url.split('node_modules/').at(-1)
  if (inPackage !== url) return inPackage?.split('/', inPackage.startsWith('@') ? 2 : 1).join('/') ?? ''
  const ours = /\/((?:server|workers)\/[^?]+)$/.exec(url)?.[1]
  return ours ?? (url.startsWith('node:') ? url : url === '' ? 'native code' : url.split('/').slice(-2).join('/'))
}

/** A sampling profiler goes by the clock. */
export const writesNote =
  'Of a write, the profile of Node counts also the time for which the process that it wakes takes the core.'

const waiting = new Set(['(idle)', '(root)'])

/** Self time by package or file, and by function, as shares of the time that the process was busy. */
export const summarize = (profile: Profile, most = 10): string => {
  const frames = new Map(profile.nodes.map(({ id, callFrame }) => [id, callFrame]))
  const homes = new Map<string, number>()
  const functions = new Map<string, number>()
  let busy = 0
  for (const [index, sample] of profile.samples.entries()) {
    const frame = frames.get(sample)
    if (!frame || waiting.has(frame.functionName)) continue
    const time = profile.timeDeltas[index] ?? 0
    const home = homeOf(frame)
    const name = `${frame.functionName || '(anonymous)'}, ${home}${home.startsWith('(') ? '' : `:${frame.lineNumber + 1}`}`
    busy += time
    homes.set(home, (homes.get(home) ?? 0) + time)
    functions.set(name, (functions.get(name) ?? 0) + time)
  }
  if (busy === 0) throw new Error('the profile is empty')
  const top = (title: string, sums: Map<string, number>) =>
    table(
      [title, 'self time, %'],
      [...sums]
        .sort((a, b) => b[1] - a[1])
        .slice(0, most)
        .map(([name, time]) => [name, figure((100 * time) / busy)]),
    )
  return `${top('package or file', homes)}\n\n${top('function', functions)}`
}

/** Which functions of a database take Postgres's time while `work` goes on; sessions begun before it are not seen. */
export const functionsDuring = async (
  cluster: Cluster,
  database: string,
  work: () => Promise<number>,
): Promise<string> => {
  await asAdmin(cluster, database, 'select pg_stat_reset()')
  const calls = await work()
  await sleep(1500)
  const rows = await asAdmin<{ name: string; calls: number; self: number }>(
    cluster,
    database,
    `select schemaname || '.' || funcname as name, calls::int, self_time * 1000 as self
       from pg_stat_user_functions order by self_time desc limit 10`,
  )
  if (rows.length === 0) return 'No function of Postgres takes part.'
  return table(
    ['function of Postgres', 'calls a request', 'self us a request'],
    rows.map(({ name, calls: made, self }) => [name, figure(made / calls), figure(self / calls)]),
  )
}

/** Makes Postgres time the functions of this database from its next connections on. */
export const timeFunctions = (cluster: Cluster, database: string): Promise<unknown> =>
  asAdmin(cluster, database, `alter database "${database}" set track_functions = 'all'`)
