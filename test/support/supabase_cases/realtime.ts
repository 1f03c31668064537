import type { RealtimeChannel } from '@supabase/supabase-js'
import type { Case, Client, World } from '#test/support/supabase_cases/case.ts'

/** Until the channel is joined; rejects with the code that refuses it. */
const joined = (channel: RealtimeChannel): Promise<RealtimeChannel> =>
  new Promise((resolve, reject) => {
    channel.subscribe((status, error) => {
      if (status === 'SUBSCRIBED') resolve(channel)
      else
        reject(Object.assign(new Error(error?.message ?? status), { code: /\w+/.exec(error?.message ?? status)?.[0] }))
    })
  })

const within = <T>(work: Promise<T>): Promise<T> =>
  Promise.race([
    work,
    new Promise<never>((_, reject) => {
      setTimeout(() => reject(new Error('nothing came within 10 s')), 10_000).unref()
    }),
  ])

/** What the first callback is called with, once the channel is joined and `then` is done. */
const first = async (
  listen: (heard: (value: any) => void) => RealtimeChannel,
  then: (channel: RealtimeChannel) => unknown,
): Promise<{ data: any }> => {
  let heard: (value: unknown) => void = () => undefined
  const value = new Promise<unknown>((resolve) => {
    heard = resolve
  })
  const channel = await within(joined(listen(heard)))
  await then(channel)
  return { data: await within(value) }
}

const refused = async (channel: RealtimeChannel) =>
  joined(channel).then(
    () => ({ data: 'SUBSCRIBED' }),
    (error: unknown) => ({ error }),
  )

const ready = async (client: Client) => {
  await client.realtime.setAuth()
  return client
}

const cases: readonly Case<World>[] = [
  {
    part: 'Channels',
    call: "supabase.channel(name).on('postgres_changes', { event, schema: 'public', table, filter }, callback).subscribe()",
    run: async ({ client }) =>
      first(
        (heard) =>
          client.channel('rows').on('postgres_changes', { event: 'INSERT', schema: 'public', table: 'books' }, heard),
        () => client.from('books').insert({ title: `heard ${crypto.randomUUID()}` }),
      ),
    gives: { eventType: 'INSERT', table: 'books' },
    note: 'of collections with `realtime`; `filter` is one of eq, neq, lt, lte, gt, gte, in, is, with `not.` or without; `old` has the id alone',
  },
  {
    part: 'Channels',
    call: "channel(name).on('broadcast', { event }, callback)",
    run: async ({ client, peer }) => {
      const other = await ready(await peer())
      return first(
        (heard) => client.channel('hall').on('broadcast', { event: 'word' }, heard),
        async () => (await joined(other.channel('hall'))).send({ type: 'broadcast', event: 'word', payload: { n: 1 } }),
      )
    },
    gives: { event: 'word', payload: { n: 1 } },
    note: 'the room of that name',
  },
  {
    part: 'Channels',
    call: "channel.send({ type: 'broadcast', event, payload })",
    run: async ({ client }) => {
      const channel = client.channel('acknowledged', { config: { broadcast: { ack: true } } })
      return { data: await (await joined(channel)).send({ type: 'broadcast', event: 'x', payload: {} }) }
    },
    gives: 'ok',
    note: 'JSON and ArrayBuffer; `self` and `ack`',
  },
  {
    part: 'Channels',
    call: 'channel.httpSend(event, payload)',
    run: async ({ client }) => ({ data: await client.channel('unjoined').httpSend('x', { n: 1 }) }),
    gives: { success: true },
    note: 'without a connection; at most 20 a second of one user',
  },
  {
    part: 'Channels',
    call: "channel.track(state), channel.untrack(), channel.presenceState(), .on('presence', ...)",
    run: async ({ client }) =>
      first(
        (heard) => client.channel('here').on('presence', { event: 'join' }, heard),
        (channel) => channel.track({ mood: 'good' }),
      ),
    gives: { newPresences: [{ mood: 'good' }] },
    note: 'the key is the id of the user, whatever `presence.key` says',
  },
  {
    part: 'Channels',
    call: 'channel(name, { config: { private: true } })',
    run: ({ client }) => refused(client.channel('no.rule', { config: { private: true } })),
    refuses: 'FORBIDDEN',
    note: 'without a [rule](realtime.md#channels) that names the room; with one it says who listens',
  },
  {
    part: 'Channels',
    call: 'channel(name, { config: { private: true, broadcast: { replay } } }), .send(message, { persist: true })',
    run: ({ client }) =>
      refused(client.channel('kept', { config: { private: true, broadcast: { replay: { since: 0 } } } })),
    refuses: 'INVALID_INPUT',
    verdict: 'not offered',
    note: 'messages are not kept: [collections](collections.md) keep rows',
  },
  {
    part: 'Channels',
    call: "on('postgres_changes') without a table",
    run: ({ client }) =>
      refused(client.channel('all').on('postgres_changes', { event: '*', schema: 'public' }, () => undefined)),
    refuses: 'INVALID_INPUT',
    verdict: 'differs',
    note: 'one table each',
  },
  {
    part: 'Channels',
    call: 'channel.unsubscribe(), supabase.removeChannel(channel), supabase.removeAllChannels(), supabase.getChannels()',
    run: async ({ client }) => {
      await client.removeAllChannels()
      return { data: client.getChannels() }
    },
    gives: [],
  },
]

/** A client asks for its token before it joins: else the first join of a socket has none. */
export const channels: readonly Case<World>[] = cases.map(({ run, ...rest }) => ({
  ...rest,
  async run(world) {
    await ready(world.client)
    return (await run?.(world)) ?? {}
  },
}))
