// What devices ask of sync, and what brings or writes the same rows without it.
import { randomUUID } from 'node:crypto'
import { ask } from '#test/support/process.ts'

export type Device = {
  readonly userId: string
  readonly headers: Record<string, string>
  readonly client_id: string
  checkpoint: string | null
  /** What was written after it is new to a reader that knows times only. */
  since: string
}

export const deviceOf = (user: { readonly userId: string; readonly headers: object } | undefined): Device => ({
  userId: user?.userId ?? '',
  headers: { ...user?.headers },
  client_id: randomUUID(),
  checkpoint: null,
  since: new Date().toISOString(),
})

const row = {
  title: 'a new note',
  body: 'of some words',
  rank: 7,
  done: false,
  tags: ['x', 'y'],
  meta: { k: 1 },
  due: '2026-03-01T00:00:00.000Z',
}
const rowsOf = (count: number) => Array.from({ length: count }, () => row)
const putsOf = (count: number) =>
  Array.from({ length: count }, () => ({
    id: randomUUID(),
    op: 'put',
    collection: 'notes',
    row_id: randomUUID(),
    data: row,
  }))

export const requestsOf = (url: string) => {
  const send = async (method: string, path: string, headers: Record<string, string>, body?: object) => {
    const answer = await ask(url, method, path, body, headers)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body.data
  }
  const pull = async (device: Device, body: object = {}): Promise<{ entries: number; isOver: boolean }> => {
    const { client_id, checkpoint, headers } = device
    const pulled = await send('POST', '/v1/client/sync/pull', headers, { client_id, checkpoint, limit: 5000, ...body })
    device.checkpoint = pulled.checkpoint
    const lists = Object.values(pulled.changes as Record<string, Record<string, unknown[]>>).flatMap(Object.values)
    return { entries: lists.reduce((sum: number, list) => sum + list.length, 0), isOver: !pulled.has_more }
  }
  const rest = (path: string, body: object) => (device: Device) =>
    send('POST', `/v1/client/collections/${path}`, device.headers, body)
  return {
    pull,
    async pullAll(device: Device, body: object = {}): Promise<number> {
      for (let sum = 0; ; ) {
        const { entries, isOver } = await pull(device, body)
        sum += entries
        if (isOver) return sum
      }
    },
    push: (device: Device, count: number) =>
      send('POST', '/v1/client/sync/push', device.headers, { client_id: device.client_id, mutations: putsOf(count) }),
    insert: (collection: string) => rest(collection, row),
    batch: (collection: string, count: number) => rest(`${collection}/batch`, { rows: rowsOf(count) }),
    /** Gives places to what was written, as the next pull of anybody would. */
    number: ({ client_id, headers }: Device) => send('GET', `/v1/client/sync/status?client_id=${client_id}`, headers),
    me: (device: Device) => send('GET', '/v1/client/users/me', device.headers),
  }
}
