import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { wordsFor } from '#test/support/definitions.ts'
import { type Answer, type Client, startHarness } from '#test/support/harness.ts'

// Every place that takes JSON of the caller's own, and every route that shows it again: a number comes back with the value that was
// sent, or it is refused by name.

const harness = await startHarness({ env: { GENERAL_RATE_LIMITS: 'off', WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8' } })
const project = await harness.project({ environment: 'development' })
const { define } = wordsFor(project)
const user = await project.user()
const { admin } = project

const exact = [
  '12345678901234567890',
  '0.1234567890123456789',
  '1e25',
  '-0.0',
  '1.10',
  '1e400',
  '-2.5E-3',
  '0.1',
  '9007199254740993',
]

const client = new pg.Client({ connectionString: inject('dsn') })
await client.connect()
afterAll(() => client.end())

/** Zeros at the end of a fraction, the form of an exponent and the sign of zero say nothing of a value. */
const numericOf = async (number: string): Promise<string> =>
  (await client.query('select trim_scale($1::numeric)::text as value', [number])).rows[0].value

type Place = {
  readonly name: string
  /** Sends a number; the answer is looked at as well. */
  readonly send: (number: string) => Promise<Answer>
  /** A double to SQL: what a double cannot hold is refused. */
  readonly isTyped?: boolean
  /** Routes that show the number. */
  readonly shown?: ((answer: Answer) => Promise<Answer>)[]
}

/** The name under which the number of this test stands: lists show those of the others too. */
let probe = ''
const named = (number: string) => `"${probe}":${number}`

let made = 0
const fresh = (stem: string) => {
  made += 1
  return `${stem}_${made}`
}
const get =
  (by: Client, path: string | ((answer: Answer) => string)) =>
  (answer: Answer): Promise<Answer> =>
    by.get(typeof path === 'string' ? path : path(answer))

let collection: string
let flow: string
beforeAll(async () => {
  collection = await define({
    columns: [
      { name: 'probe', type: 'jsonb' },
      { name: 'title', type: 'text' },
    ],
  })
  await admin.post('/currencies', { code: 'GOLD', name: 'Gold', initial_grant: 1000, client_spendable: true })
  await admin.post('/catalog', { key: 'sword', name: 'Sword', item_type: 'durable' })
  await admin.post('/leaderboards', { key: 'board', name: 'Board', scoring: 'last', client_writable: true })
  await admin.post('/flags', { key: 'probes', name: 'Probes', value_type: 'json', default_value: {}, off_value: {} })
  const made = await admin.post('/onboarding/flows', {
    name: 'Flow',
    steps: [
      { id: 'one', type: 'input' },
      { id: 'two', type: 'info' },
    ],
  })
  flow = made.data.id
})

const now = '"start_at":"2026-12-01T00:00:00Z","end_at":"2026-12-02T00:00:00Z"'

const places: Place[] = [
  {
    name: 'properties of the caller',
    send: (n) => user.patch('/client/users/me', `{"properties":{${named(n)}}}`),
    shown: [get(user, '/client/users/me'), () => admin.get(`/users/${user.id}`), () => admin.get('/users')],
  },
  {
    name: 'properties of a new user',
    send: (n) => admin.post('/users', `{"properties":{"a":[{${named(n)}}]}}`),
    shown: [get(admin, (answer) => `/users/${answer.data.id}`)],
  },
  {
    name: 'properties of a user, replaced',
    send: (n) => admin.patch(`/users/${user.id}`, `{"properties":{${named(n)}}}`),
    shown: [() => user.get('/client/users/me')],
  },
  {
    name: 'properties of users in bulk',
    send: (n) => admin.post('/users/bulk-update', `{"updates":[{"user_id":"${user.id}","properties":{${named(n)}}}]}`),
    shown: [() => user.get('/client/users/me')],
  },
  {
    name: 'properties of a cohort',
    send: (n) => admin.post('/users/cohort', `{"count":1,"properties":{${named(n)}}}`),
    shown: [get(admin, (answer) => `/users/${answer.data.user_ids[0]}`)],
  },
  {
    name: 'sign-in of a user with properties',
    send: (n) => admin.patch(`/users/${user.id}`, `{"properties":{${named(n)}}}`),
    shown: [() => admin.post(`/users/${user.id}/session`)],
  },
  {
    name: 'properties of an event',
    send: (n) => user.post('/client/events', `{"event_name":"probed","properties":{${named(n)}}}`),
    shown: [
      () => admin.get('/events?event_name=probed&limit=1'),
      get(admin, (answer) => `/events/${answer.data.event.id}`),
      () => admin.get(`/users/${user.id}/events?limit=1`),
    ],
  },
  {
    name: 'schema of an event',
    send: (n) => admin.put('/events/definitions/formed', `{"schema":{"properties":{"a":{"const":{${named(n)}}}}}}`),
    shown: [() => admin.get('/events/definitions/formed')],
  },
  {
    name: 'a row of a collection',
    send: (n) => user.post(`/client/collections/${collection}`, `{"probe":{${named(n)}}}`),
    shown: [
      get(user, (answer) => `/client/collections/${collection}/${answer.data.id}`),
      () => user.post(`/client/collections/${collection}/find`, { limit: 1 }),
      () => user.get(`/client/collections/${collection}?limit=1`),
    ],
  },
  {
    name: 'a row of a batch, changed',
    send: async (n) => {
      const made = await user.post(`/client/collections/${collection}/batch`, { rows: [{ title: 'x' }] })
      return user.patch(`/client/collections/${collection}/${made.data[0].id}`, `{"probe":{${named(n)}}}`)
    },
    shown: [
      (answer) =>
        admin.post(`/collections/${collection}/find`, { filter: { column: 'id', op: 'eq', value: answer.data.id } }),
    ],
  },
  {
    name: 'a row of a transaction',
    send: (n) =>
      user.post(
        '/client/collections/transaction',
        `{"operations":[{"op":"insert","collection":"${collection}","data":{"probe":{${named(n)}}}}]}`,
      ),
  },
  {
    name: 'the enum of a column',
    send: (n) =>
      admin
        .post(`/collections/${collection}/columns`, `{"name":"${fresh('c')}","type":"numeric","enum":[${n}]}`)
        .then(probing('enum')),
  },
  {
    name: 'the filter of an index',
    send: (n) =>
      admin
        .post(
          '/collections',
          `{"name":"${fresh('filtered')}","columns":[{"name":"a","type":"numeric"}],"indexes":[{"columns":["a"],"where":{"column":"a","op":"gt","value":${n}}}]}`,
        )
        .then(probing('value')),
  },
  {
    name: 'a default of a column',
    send: (n) =>
      admin.post(
        `/collections/${collection}/columns`,
        `{"name":"${fresh('c')}","type":"jsonb","default":{${named(n)}}}`,
      ),
    shown: [() => admin.get(`/collections/${collection}`)],
  },
  {
    name: 'bounds of a column',
    send: (n) =>
      admin
        .post(`/collections/${collection}/columns`, `{"name":"${fresh('c')}","type":"numeric","min":${n},"max":1e999}`)
        .then(probing('min')),
    shown: [],
  },
  {
    name: 'metadata of a group',
    send: (n) => user.post('/client/groups', `{"name":"${fresh('Group')}","metadata":{${named(n)}}}`),
    shown: [get(user, (answer) => `/client/groups/${answer.data.id}`)],
  },
  {
    name: 'metadata of a payment',
    send: (n) => user.post('/client/currencies/GOLD/spend', `{"amount":1,"reason":"x","metadata":{${named(n)}}}`),
    shown: [() => user.get('/client/currencies/GOLD/transactions?limit=1')],
  },
  {
    name: 'metadata of a payment that is answered again',
    send: (n) => {
      const body = `{"amount":1,"reason":"x","metadata":{${named(n)}}}`
      const key = { 'idempotency-key': `again ${n}` }
      return user
        .post('/client/currencies/GOLD/spend', body, key)
        .then(() => user.post('/client/currencies/GOLD/spend', body, key))
    },
  },
  {
    name: 'metadata of an item',
    send: (n) => admin.patch('/catalog/sword', `{"metadata":{${named(n)}}}`),
    shown: [
      () => admin.get('/catalog/sword'),
      () => user.get('/client/catalog/sword'),
      () => user.get('/client/catalog'),
    ],
  },
  {
    name: 'metadata of an imported item',
    send: (n) =>
      admin.post(
        '/catalog/import?dry_run=false',
        `[{"key":"sword","name":"Sword","item_type":"durable","metadata":{${named(n)}}}]`,
      ),
    shown: [() => admin.get('/catalog/sword')],
  },
  {
    name: 'marks of a stack',
    send: async (n) => {
      await admin.post('/inventory/grant', {
        app_user_id: user.id,
        catalog_item_key: 'sword',
        reason: 'gift',
      })
      return user.patch('/client/inventory/sword', `{"metadata":{"user":{${named(n)}}}}`)
    },
    shown: [() => user.get('/client/inventory')],
  },
  {
    name: 'metadata of a score',
    send: (n) => user.post('/client/leaderboards/board/scores', `{"score":${1 + made++},"metadata":{${named(n)}}}`),
    shown: [() => user.get('/client/leaderboards/board/me')],
  },
  {
    name: 'a value of remote config',
    send: (n) =>
      admin.post(
        '/config',
        `{"key":"k","value":{${named(n)}},"value_type":"json","conditions":[{"percentage":100,"value":{${named(n)}}}]}`,
      ),
    shown: [() => admin.get('/config'), () => user.get('/client/config'), () => project.app.get('/client/config')],
  },
  {
    name: 'a value of remote config that is a number',
    send: (n) => admin.post('/config', `{"key":"${probe}","value":${n},"value_type":"number"}`).then(probing('value')),
    shown: [() => project.app.get('/client/config')],
  },
  {
    name: 'values and rules of a flag',
    send: (n) =>
      admin.patch(
        '/flags/probes',
        `{"default_value":{${named(n)}},"rules":[{"filter":{"column":"a","op":"eq","value":${n}},"percentage":100,"value":{${named(n)}}}]}`,
      ),
    shown: [
      () => admin.get('/flags/probes'),
      () => user.get('/client/flags/probes'),
      () => user.post('/client/flags/evaluate', {}),
      () => admin.get('/flags/probes/history'),
    ],
  },
  {
    name: 'an override of a flag',
    send: (n) => admin.put('/flags/probes/overrides', `{"${user.id}":{${named(n)}}}`),
    shown: [() => user.get('/client/flags/probes')],
  },
  {
    name: 'rules of a segment',
    send: (n) =>
      admin
        .post(
          '/segments',
          `{"key":"${fresh('segment')}","name":"S","rules":{"and":[{"source":"property","column":"a","op":"gt","value":${n}}]}}`,
        )
        .then(probing('value')),
    shown: [(answer) => admin.get(`/segments/${answer.data.id}`).then(probing('value'))],
  },
  {
    name: 'the filter of an XP rule',
    send: (n) =>
      admin
        .post(
          '/xp/rules',
          `{"key":"${fresh('rule')}","name":"R","event_name":"e","amount":1,"event_filter":{"column":"a","op":"gt","value":${n}}}`,
        )
        .then(probing('value')),
  },
  {
    name: 'the multiplier of an XP rule',
    isTyped: true,
    send: (n) =>
      admin
        .post(
          '/xp/rules',
          `{"key":"${fresh('rule')}","name":"R","event_name":"e","amount_property":"a","multiplier":${n}}`,
        )
        .then(probing('multiplier')),
  },
  {
    name: 'the filter of a streak',
    send: (n) =>
      admin
        .post(
          '/streaks',
          `{"key":"${fresh('streak')}","name":"R","qualifying_event":"e","event_filter":{"column":"a","op":"gt","value":${n}}}`,
        )
        .then(probing('value')),
  },
  {
    name: 'the filter of an achievement',
    send: (n) =>
      admin
        .post(
          '/achievements',
          `{"key":"${fresh('achievement')}","name":"A","criteria":{"type":"event_count","event_name":"e","target_value":3,"event_filter":{"column":"a","op":"gt","value":${n}}}}`,
        )
        .then(probing('value')),
  },
  {
    name: 'the filter of a leaderboard',
    send: (n) =>
      admin
        .post(
          '/leaderboards',
          `{"key":"${fresh('board')}","name":"B","scoring":"sum","source":{"type":"event","event_name":"e","filter":{"column":"a","op":"gt","value":${n}}}}`,
        )
        .then(probing('value')),
  },
  {
    name: 'the filter of a webhook',
    send: (n) =>
      admin
        .post(
          '/webhooks',
          `{"event_name":"e","target_url":"https://127.0.0.1/${fresh('hook')}","filter":{"column":"a","op":"gt","value":${n}}}`,
        )
        .then(probing('value')),
  },
  {
    name: 'the config of a step',
    send: (n) =>
      admin.post(
        '/onboarding/flows',
        `{"name":"F","is_active":false,"steps":[{"type":"custom","config":{${named(n)}}}]}`,
      ),
    shown: [(answer) => admin.get(`/onboarding/flows/${answer.data.id}`)],
  },
  {
    name: 'answers of a step',
    send: async (n) => {
      await user.post(`/client/onboarding/${flow}/start`)
      return user.post(`/client/onboarding/${flow}/advance`, `{"step_id":"one","answers":{${named(n)}}}`)
    },
    shown: [() => user.get('/client/onboarding')],
  },
  {
    name: 'the reward of a promo code',
    send: (n) => admin.post('/referrals', `{"reward_referee":{${named(n)}}}`),
    shown: [() => admin.get('/referrals')],
  },
]

/** Answers that show the number under another name. */
const probing =
  (field: string) =>
  (answer: Answer): Answer => ({ ...answer, text: answer.text.replaceAll(`"${field}"`, `"${probe}"`) })

const probes = (text: string) =>
  [...text.matchAll(new RegExp(`"${probe}" ?: ?[["]*(-?[0-9][-+.0-9eE]*)`, 'g'))].map(([, number]) => number as string)

describe.each(places.map((place) => [place.name, place] as const))('%s', (_, place) => {
  test.each(exact)('%s', async (number) => {
    probe = fresh('probe')
    const answer = await place.send(number)
    if (answer.status === 400 && place.isTyped) {
      expect(answer.error?.details, answer.text).toMatchObject({ field: expect.stringMatching(/./) })
      return
    }
    expect([200, 201], answer.text).toContain(answer.status)
    const wanted = await numericOf(number)
    const shown = await Promise.all((place.shown ?? []).map((show) => show(answer)))
    for (const found of shown) expect(probes(found.text), found.text).not.toEqual([])
    expect(
      [answer, ...shown].flatMap((found) => probes(found.text)),
      answer.text,
    ).not.toEqual([])
    for (const text of [answer, ...shown].flatMap((found) => probes(found.text)))
      expect(await numericOf(text)).toBe(wanted)
  })
})

const board = '"name":"n","source":{"type":"manual"},"scoring":"last"'
const typed: [field: string, method: 'POST' | 'PUT' | 'PATCH', path: string, body: string][] = [
  [
    'xp_reward',
    'POST',
    '/achievements',
    '{"key":"k","name":"n","xp_reward":N,"criteria":{"type":"event_count","event_name":"e","target_value":3}}',
  ],
  [
    'milestones.0.count',
    'POST',
    '/streaks',
    '{"key":"k","name":"n","qualifying_event":"e","milestones":[{"count":N,"reward":{}}]}',
  ],
  [
    'goal_value',
    'POST',
    '/challenges',
    `{"name":"n","goal_type":"event_count","event_name":"e","goal_value":N,${now}}`,
  ],
  [
    'adjustments.0.amount',
    'POST',
    '/currencies/transactions',
    '{"app_user_id":"U","adjustments":[{"currency_code":"GOLD","amount":N}],"reason":"x"}',
  ],
  ['prices.0.price', 'PUT', '/catalog/sword/prices', '{"prices":[{"currency_code":"GOLD","price":N}]}'],
  ['rules.0.percentage', 'PATCH', '/flags/probes', '{"rules":[{"percentage":N,"value":1}]}'],
  ['conditions.0.percentage', 'POST', '/config', '{"key":"k","value":1,"conditions":[{"percentage":N,"value":1}]}'],
  [
    'rules.and[0].within_days',
    'POST',
    '/segments',
    '{"key":"k","name":"n","rules":{"and":[{"source":"event","event_name":"e","measure":"count","op":"gt","value":1,"within_days":N}]}}',
  ],
  ['sample_rate', 'PUT', '/events/definitions/s', '{"sample_rate":N}'],
  ['columns.0.default', 'POST', '/collections', '{"name":"k","columns":[{"name":"a","type":"integer","default":N}]}'],
  ['columns.0.max', 'POST', '/collections', '{"name":"k","columns":[{"name":"a","type":"bigint","max":N}]}'],
  [
    'columns.0.max_length',
    'POST',
    '/collections',
    '{"name":"k","columns":[{"name":"a","type":"text","max_length":N}]}',
  ],
  [
    'rewards.0.from_rank',
    'POST',
    '/leaderboards',
    `{"key":"k",${board},"period":"weekly","rewards":[{"from_rank":N,"to_rank":3,"reward":{}}]}`,
  ],
  ['duration_days', 'POST', '/users/U/entitlements', '{"entitlement_id":"pro","duration_days":N}'],
  ['properties', 'PATCH', '/users/U', '{"properties":N}'],
  ['use_effect', 'PATCH', '/catalog/sword', '{"use_effect":N}'],
  ['steps.0.config', 'POST', '/onboarding/flows', '{"name":"f","steps":[{"type":"info","config":N}]}'],
]

test.each(typed)('%s is refused by its name where it cannot be held', async (field, method, path, body) => {
  for (const number of ['12345678901234567890', '1e400', '-1e-400']) {
    const answer = await admin.request(
      method,
      path.replace('U', user.id),
      body.replace('N', number).replace('"U"', `"${user.id}"`),
    )
    expect(answer, answer.text).toMatchObject({ status: 400, error: { details: { field } } })
    expect(answer.error?.message).not.toMatch(/received object|rawJSON/)
  }
})
