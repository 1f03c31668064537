// A server whose heap is looked at from outside, by the inspector of Node: the program itself is unchanged.
import { setTimeout as sleep } from 'node:timers/promises'
import WebSocket from 'ws'
import { freePort } from '#test/support/process.ts'

export type Memory = { readonly rss: number; readonly heapUsed: number; readonly external: number }

/** Bytes and objects by the name of their constructor, or by what V8 calls them. */
export type Shape = ReadonlyMap<string, { readonly count: number; readonly bytes: number }>

export type Inspector = {
  /** After a full collection of garbage. */
  memory(): Promise<Memory>
  shape(): Promise<Shape>
  close(): void
}

type Result = { readonly result: { readonly value: string } }

/** What the server's environment needs, and how to reach it when it runs. */
export const inspected = async () => {
  const port = await freePort()
  return { env: { NODE_OPTIONS: `--inspect=127.0.0.1:${port}` }, open: () => open(port) }
}

const open = async (port: number): Promise<Inspector> => {
  const targets = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as {
    webSocketDebuggerUrl: string
  }[]
  const socket = new WebSocket(targets[0]?.webSocketDebuggerUrl ?? '', { maxPayload: 0 })
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
  const waiting = new Map<number, { resolve: (result: Result) => void; reject: (error: Error) => void }>()
  let chunks: string[] = []
  let last = 0
  socket.on('message', (data) => {
    const { id, result, error, method, params } = JSON.parse(String(data))
    if (method === 'HeapProfiler.addHeapSnapshotChunk') chunks.push(params.chunk)
    const waiter = waiting.get(id)
    waiting.delete(id)
    if (error) waiter?.reject(new Error(error.message))
    else waiter?.resolve(result)
  })
  const call = (method: string, params: object = {}) =>
    new Promise<Result>((resolve, reject) => {
      last += 1
      waiting.set(last, { resolve, reject })
      socket.send(JSON.stringify({ id: last, method, params }))
    })
  const collect = async () => {
    // what finalizers and weak references let go goes in the next one
    for (let times = 0; times < 3; times += 1) {
      await call('HeapProfiler.collectGarbage')
      await sleep(50)
    }
  }
  return {
    async memory() {
      await collect()
      const expression = 'JSON.stringify(process.memoryUsage())'
      return JSON.parse((await call('Runtime.evaluate', { expression })).result.value) as Memory
    },
    async shape() {
      await collect()
      chunks = []
      await call('HeapProfiler.takeHeapSnapshot', { reportProgress: false, captureNumericValue: false })
      const text = chunks.join('')
      chunks = []
      return shapeOf(text)
    },
    close: () => socket.terminate(),
  }
}

const shapeOf = (text: string): Shape => {
  const { snapshot, nodes, strings } = JSON.parse(text) as {
    snapshot: { meta: { node_fields: string[]; node_types: [string[], ...unknown[]] } }
    nodes: number[]
    strings: string[]
  }
  const { node_fields: fields, node_types: types } = snapshot.meta
  const [type, name, size] = ['type', 'name', 'self_size'].map((field) => fields.indexOf(field)) as [
    number,
    number,
    number,
  ]
  const found = new Map<string, { count: number; bytes: number }>()
  for (let at = 0; at < nodes.length; at += fields.length) {
    const kind = types[0][nodes[at + type] ?? 0] ?? ''
    const key = kind === 'object' || kind === 'native' ? (strings[nodes[at + name] ?? 0] ?? '') : `(${kind})`
    const sum = found.get(key) ?? { count: 0, bytes: 0 }
    sum.count += 1
    sum.bytes += nodes[at + size] ?? 0
    found.set(key, sum)
  }
  return found
}

/** What has grown most between two snapshots. */
export const grown = (before: Shape, after: Shape, most: number) =>
  [...after]
    .map(([name, { count, bytes }]) => {
      const { count: had = 0, bytes: held = 0 } = before.get(name) ?? {}
      return { name: name.slice(0, 60), count: count - had, bytes: bytes - held }
    })
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, most)
