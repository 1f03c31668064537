import type { Shown } from '#test/support/supabase_cases/case.ts'

/** Channels: made by test/supabase/realtime, whose tests have these names. */
export const channels: Shown[] = [
  {
    part: 'Channels',
    call: "channel(name).on('postgres_changes', { event, schema: 'public', table, filter }, callback)",
    note: 'of collections with `realtime`; `filter` is one of eq, neq, lt, lte, gt, gte, in, is, with `not.` or without; `old` has the id alone',
  },
  { part: 'Channels', call: "channel(name).on('broadcast', { event }, callback)", note: 'the room of that name' },
  {
    part: 'Channels',
    call: "channel.send({ type: 'broadcast', event, payload })",
    note: 'JSON and ArrayBuffer; `self` and `ack`',
  },
  {
    part: 'Channels',
    call: "channel.track(state), channel.untrack(), channel.presenceState(), .on('presence', ...)",
    note: 'the key is the id of the user, whatever `presence.key` says',
  },
  {
    part: 'Channels',
    call: 'a channel without a session',
    refuses: 'UNAUTHORIZED',
    note: 'await `realtime.setAuth()` before the first `subscribe()`, else realtime-js sends the first join without its token and repeats it a second later',
  },
  {
    part: 'Channels',
    call: "on('postgres_changes') without a table",
    refuses: 'INVALID_INPUT',
    note: 'one table each',
  },
  {
    part: 'Channels',
    call: 'channel.httpSend(event, payload)',
    note: 'without a connection: a message of at most 32 KB, 20 a second of one user',
  },
  {
    part: 'Channels',
    call: 'channel(name, { config: { private: true } }) without a rule',
    refuses: 'FORBIDDEN',
    note: 'a [rule](realtime.md#channels) for the room says who listens',
  },
]
