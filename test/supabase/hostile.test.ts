import fc from 'fast-check'
import { expect, test } from 'vitest'
import { startCollections } from '#test/support/definitions.ts'
import { bodyOf, inUrl, knock, longEnough, often, queryOf, wordsOf } from '#test/support/hostile.ts'

/** Whatever is sent without a session, by a user, or to rooms, is the fault of its sender. */
const { harness, project, define, insert } = await startCollections()
await project.admin.patch('', { rest_enabled: true, anonymous_reads: true })
const [user, owner] = [await project.user(), await project.user()]
const posts = await define({ read_policy: 'public', columns: [{ name: 'title', type: 'text' }] })
await insert(posts, { title: 'kept' }, owner)
const stranger = { apikey: project.clientKey }
const member = { ...stranger, authorization: `Bearer ${user.sessionToken}` }

const word = wordsOf(
  posts,
  'rpc',
  'title',
  'id',
  'eq.',
  'not.',
  'and',
  '(',
  ')',
  ',',
  '->>',
  '::',
  'user_id',
  'count()',
)
const words = fc.array(inUrl(word), { maxLength: 5 }).map((list) => list.join(''))
const methods = ['GET', 'HEAD', 'POST', 'PATCH', 'PUT', 'DELETE']
const rest = fc.tuple(
  fc.constantFrom(...methods),
  fc.oneof({ weight: 4, arbitrary: fc.constant(posts) }, words),
  queryOf(['select', 'title', 'id', 'user_id', 'order', 'or', 'limit', 'offset', 'columns', 'on_conflict'], word),
  bodyOf({ title: word, id: fc.uuid(), user_id: fc.constantFrom(user.id, owner.id) }, word),
  fc.constantFrom({}, { prefer: 'return=representation' }, { prefer: 'tx=rollback' }, { prefer: 'count=exact' }),
  fc.constantFrom('application/json', 'text/csv', 'application/x-www-form-urlencoded', 'application/octet-stream', '*'),
)
const kept = () =>
  project.sql(
    `select id, title, user_id, updated_at from collections.${posts}
                                 where user_id is distinct from $1`,
    [user.id],
  )

test(
  'rows, without a session',
  async () => {
    const before = await kept()
    await often(rest, async ([method, path, query, body, more, type]) => {
      const isRead = method === 'GET' || method === 'HEAD'
      const headers = { ...stranger, ...more, ...(isRead ? {} : { 'content-type': type }) }
      const { status, text } = await knock(harness.url, { method, path: `/rest/v1/${path}?${query}`, headers, body })
      if (!isRead) expect(status, `${method} ${path} ${query}: ${text}`).toBeGreaterThanOrEqual(400)
    })
    expect(await kept()).toEqual(before)
  },
  longEnough,
)

test(
  'rows, as a user: those of others stay',
  async () => {
    const before = await kept()
    await often(rest, async ([method, path, query, body, more, type]) => {
      const headers = { ...member, ...more, 'content-type': type }
      await knock(harness.url, { method, path: `/rest/v1/${path}?${query}`, headers, body })
    })
    expect(await kept()).toEqual(before)
  },
  longEnough,
)

test(
  'messages to rooms',
  async () => {
    const message = fc.record(
      {
        topic: fc.oneof(fc.constant('hall'), fc.string()),
        event: fc.oneof(fc.constant('x'), fc.string()),
        payload: fc.jsonValue(),
        private: fc.oneof(fc.boolean(), fc.jsonValue()),
      },
      { requiredKeys: [] },
    )
    const sent = fc.tuple(
      fc.oneof(
        fc.array(message, { maxLength: 4 }).map((messages) => JSON.stringify({ messages })),
        bodyOf({ messages: fc.array(message), topic: word, payload: fc.jsonValue() }, word),
      ),
      fc.oneof(
        fc.constant(''),
        fc.tuple(words, words).map(([topic, event]) => `/${topic || 'x'}/events/${event || 'x'}`),
      ),
      fc.constantFrom('application/json', 'application/octet-stream', 'text/plain'),
      fc.constantFrom(stranger, member, { apikey: project.serverKey }),
    )
    await often(sent, async ([body, at, type, who]) => {
      const headers = { ...who, 'content-type': type }
      await knock(harness.url, { method: 'POST', path: `/realtime/v1/api/broadcast${at}`, headers, body })
    })
  },
  longEnough,
)
