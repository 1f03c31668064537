// Where the time of a Node process goes, as its own profiler tells it.
import { figure, table } from './numbers.ts'

type Frame = { readonly functionName: string; readonly url: string; readonly lineNumber: number }
type Profile = {
  readonly nodes: readonly { readonly id: number; readonly callFrame: Frame }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

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
