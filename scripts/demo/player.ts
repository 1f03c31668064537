/** A player of the game: what a phone asks, and what its answers moved. */
import { type Ask, DemoError, type Headers, print } from './world.ts'

/** The thing that the shop sells. */
export const item = 'grand'

type Answer<T> = { readonly status: number; readonly data: T; readonly code: string | undefined }

/** One request, printed as one line with its status; a refusal is an answer too. */
export const send = async <T>(url: string, method: string, path: string, headers: Headers, body?: unknown) => {
  const response = await fetch(url + path, {
    method,
    headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(10_000),
  })
  const { data, error } = (await response.json()) as { data: T; error?: { code: string } }
  const short = path.replace(/([0-9a-f]{8})-[0-9a-f-]{27}/g, '$1…')
  print(`   ${method} ${short} -> ${response.status}${error ? ` ${error.code}` : ''}`)
  return { status: response.status, data, code: error?.code } satisfies Answer<T>
}

type Standing = { readonly tier: string; readonly points: number; readonly rank: number; readonly zone: string }
type Effects = {
  readonly league?: Standing & { run_key: string }
  readonly currencies?: readonly { balance: number }[]
}
type Result = { readonly tier_from: string; readonly tier_to: string; readonly result: string; readonly rank: number }
type Mine = { readonly current: Standing | null; readonly last_result: Result | null }
export type World = { readonly url: string; readonly ask: Ask; readonly admin: string; readonly developer: Headers }

export const createPlayer = async ({ url, ask, admin, developer }: World, clientKey: string, name: string) => {
  const key = { 'x-api-key': clientKey }
  const signedIn = await ask<{ session_token: string }>('POST', '/v1/client/auth/anonymous', {}, key, true)
  const headers = { ...key, authorization: `Bearer ${signedIn.session_token}` }
  const read = <T>(path: string) => ask<T>('GET', `/v1/client/${path}`, undefined, headers, true)
  const named = { display_name: name }
  const { id } = await ask<{ id: string }>('PATCH', '/v1/client/users/me', named, headers, true)
  await ask('PUT', `${admin}/leagues/weekly/users/${id}`, { tier_key: 'silver' }, developer, true)
  return {
    name,
    read,
    mine: () => read<Mine>('leagues/weekly'),
    coins: async () => (await read<{ balance: number }[]>('currencies'))[0]?.balance ?? 0,
    /** How many the user owns of the thing that the shop sells. */
    owned: async () =>
      (await read<{ item: { key: string }; quantity: number }[]>('inventory'))
        .filter((stack) => stack.item.key === item)
        .reduce((sum, { quantity }) => sum + quantity, 0),
    async summary<T>(path: string) {
      // a summary stands beside the data
      const response = await fetch(`${url}/v1/client/${path}`, { headers })
      return ((await response.json()) as { summary: T }).summary
    },
    send: <T>(method: string, path: string, body?: unknown) =>
      send<T>(url, method, `/v1/client/${path}`, headers, body),
    /** Completes so many lessons, and prints what the answers say of points, rank and coins. */
    async play(lessons: number) {
      const [{ current }, coins] = [await this.mine(), await this.coins()]
      let [now, balance]: [Effects['league'], number] = [undefined, coins]
      for (let n = 0; n < lessons; n += 1) {
        const lesson = { event_name: 'lesson_completed' }
        const { effects } = await ask<{ effects: Effects }>('POST', '/v1/client/events', lesson, headers, true)
        now = effects.league
        balance = effects.currencies?.[0]?.balance ?? balance
      }
      if (!now) throw new DemoError('The lesson moved nobody in the league.')
      const was = current ? `from ${current.points} points, rank ${current.rank}` : 'enters'
      const earned = balance === coins ? '' : `; ${coins} -> ${balance} coins`
      const moved = `${was} -> ${now.points} points, rank ${now.rank} of ${now.tier} (${now.zone})`
      print(`   ${name.padEnd(5)} ${lessons} lesson${lessons === 1 ? '' : 's'}: ${moved}${earned}`)
      return now
    },
  }
}
export type Player = Awaited<ReturnType<typeof createPlayer>>
