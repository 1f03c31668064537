import { freshIp, type Harness, type Project } from '#test/support/harness.ts'
import { createApp, type Store } from '../../sdk/src/index.ts'

/** A network that a test breaks as it likes, and that remembers what passed. */
export type Network = {
  readonly fetch: (url: string, init: any) => Promise<Response>
  /** Requests that reached the server, as `POST /v1/client/events`. */
  readonly sent: string[]
  /** The statuses of their answers, in the order in which these came. */
  readonly statuses: number[]
  isOffline: boolean
  /** The server gets these requests, and their answers are lost, once each. */
  readonly losing: string[]
  /** In front of the server, for answers of somebody else's. */
  answer: ((route: string) => Response | undefined) | undefined
  count(route: string): number
}

export const network = (): Network => {
  const address = freshIp()
  const made: Network = {
    sent: [],
    statuses: [],
    isOffline: false,
    losing: [],
    answer: undefined,
    count: (route) => made.sent.filter((one) => one === route).length,
    async fetch(url, init) {
      if (made.isOffline) throw new TypeError('fetch failed')
      const route = `${init.method} ${new URL(url).pathname}`
      const answered = made.answer?.(route)
      if (answered) return answered
      made.sent.push(route)
      const answer = await fetch(url, { ...init, headers: { ...init.headers, 'x-forwarded-for': address } })
      made.statuses.push(answer.status)
      const place = made.losing.indexOf(route)
      if (place < 0) return answer
      made.losing.splice(place, 1)
      await answer.text()
      throw new TypeError('fetch failed')
    },
  }
  return made
}

/** A network that loses every third answer, after the server has done what was asked. */
export const lossyNetwork = (): Network => {
  const net = network()
  const whole = net.fetch
  let count = 0
  return Object.assign(net, {
    async fetch(url: string, init: unknown) {
      const answer = await whole(url, init)
      count += 1
      if (count % 3 !== 0) return answer
      await answer.text()
      throw new TypeError('fetch failed')
    },
  })
}

/** A store that outlives an app, as a device does. */
export const device = (): Store & { readonly values: Map<string, string> } => {
  const values = new Map<string, string>()
  return {
    values,
    getItem: async (key) => values.get(key) ?? null,
    setItem: async (key, value) => void values.set(key, value),
    removeItem: async (key) => void values.delete(key),
  }
}

export type Setting = { store?: Store; net?: Network; now?: () => number; retries?: number; timeout?: number }

/** An app with a device and a network of its own; waits between repetitions take no time. */
export const appOf = (harness: Harness, project: Project, setting: Setting = {}) => {
  const { store = device(), net = network(), now = Date.now } = setting
  const app = createApp({
    url: harness.url,
    key: project.clientKey,
    store,
    fetch: net.fetch as never,
    now,
    random: () => 0,
    retries: setting.retries,
    timeout: setting.timeout,
  })
  return { app, net, store }
}
