import { describe, expect, test } from 'vitest'
import { wordsFor } from '#test/support/definitions.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness({ env: { GENERAL_RATE_LIMITS: 'off' } })
const project = await harness.project()
const { define } = wordsFor(project)
const { admin } = project
const user = await project.user()
const name = await define({
  columns: [
    { name: 'meta', type: 'jsonb' },
    { name: 'numbers', type: 'numeric[]' },
    { name: 'title', type: 'text' },
  ],
})
const rows = `/client/collections/${name}`
const adminRows = `/collections/${name}/rows`
const countOf = async () => Number((await project.sql(`select count(*) from collections.${name}`))[0].count)

const sent = async (
  client: { headers: Record<string, string> },
  method: string,
  path: string,
  body: string | Uint8Array<ArrayBuffer> | null,
  type = 'application/json',
) => {
  const response = await fetch(`${harness.url}/v1${path}`, {
    method,
    body,
    headers: { ...client.headers, 'content-type': type },
  })
  const answer = (await response.json()) as { error?: { code: string; message: string; details?: object }; data?: any }
  return { status: response.status, ...answer }
}
const ofProject = `/admin/projects/${project.id}`

describe('a body that is not UTF-8', () => {
  const bytes = (text: string) => new Uint8Array(Buffer.from(text, 'latin1'))

  test.each([
    ['POST', '/client/events', '{"event_name":"e","properties":{"a":"\xff"}}', 'INVALID_BODY'],
    ['PATCH', '/client/users/me', '{"display_name":"\xc3"}', 'INVALID_INPUT'],
    ['POST', rows, '{"title":"\xed\xa0\x80"}', 'INVALID_JSON'],
    ['POST', `${rows}/batch`, '{"rows":[{"title":"\xc0\x80"}]}', 'INVALID_JSON'],
    ['POST', `${ofProject}/config`, '{"key":"k","value":"\xff"}', 'INVALID_INPUT'],
    ['POST', `${ofProject}/catalog/import`, '[{"key":"k","name":"\xff","item_type":"durable"}]', 'INVALID_BODY'],
  ])('%s %s', async (method, path, text, code) => {
    const client = path.startsWith(ofProject) ? admin : user
    expect(await sent(client, method, path, bytes(text))).toMatchObject({
      status: 400,
      error: { code, message: 'The body is not valid UTF-8.' },
    })
  })

  test('what is UTF-8 is kept', async () => {
    const answer = await sent(user, 'POST', rows, new Uint8Array(Buffer.from('{"title":"é\u{1f600}"}')))
    expect(answer).toMatchObject({ status: 201, data: { title: 'é\u{1f600}' } })
  })
})

describe('an empty body', () => {
  test('is no row', async () => {
    const before = await countOf()
    const { id } = (await user.post(rows, { title: 'x' })).data
    for (const [client, method, path] of [
      [user, 'POST', rows],
      [user, 'PATCH', `${rows}/${id}`],
      [admin, 'POST', ofProject + adminRows],
      [admin, 'PATCH', `${ofProject}${adminRows}/${id}`],
    ] as const)
      for (const body of ['', null, ' '])
        expect(await sent(client, method, path, body), `${method} ${path}`).toMatchObject({
          status: 400,
          error: { code: 'INVALID_JSON' },
        })
    expect(await countOf()).toBe(before + 1)
    expect((await user.post(rows, {})).status).toBe(201)
  })

  test('is one without fields where a route can be called without a body', async () => {
    expect((await sent(user, 'POST', `${rows}/find`, null)).status).toBe(200)
    expect((await sent(project.app, 'POST', '/client/auth/anonymous', '')).status).toBe(201)
  })
})

describe('numbers of a few letters that are long when they are written out', () => {
  const list = (count: number, item = '1e999') => `[${Array(count).fill(item).join()}]`

  test('are refused before SQL where they pass the size of a body', async () => {
    const before = await countOf()
    for (const body of [
      `{"meta":${list(150_000)}}`,
      `{"meta":${list(1_100)}}`,
      `{"numbers":${list(1_100)}}`,
      `{"numbers":${list(1_100, '"1e999"')}}`,
      `{"numbers":${list(1_100, '"\\u0031e999"')}}`,
      `{"title":"x","meta":[${list(600)},{"a":${list(600)}}]}`,
    ])
      for (const answer of [
        await user.post(rows, body),
        await admin.post(adminRows, body),
        await user.post(`${rows}/batch`, `{"rows":[${body}]}`),
      ])
        expect(answer).toMatchObject({
          status: 400,
          error: { code: 'INVALID_JSON', message: expect.stringContaining('1 MB') },
        })
    expect(await countOf()).toBe(before)
    const most = await user.post(rows, `{"meta":${list(1_000)}}`)
    expect(most.status).toBe(201)
    expect(most.text.length).toBeGreaterThan(1_000_000)
  })

  test('count as they are stored against the limit of each value', async () => {
    const long = list(70)
    const flag = await admin.post('/flags', {
      key: 'f',
      name: 'F',
      value_type: 'json',
      default_value: {},
      off_value: {},
    })
    expect(flag.status).toBe(201)
    expect((await admin.post('/catalog', { key: 'sword', name: 'Sword', item_type: 'durable' })).status).toBe(201)
    expect(
      (await admin.post('/currencies', { code: 'GOLD', name: 'Gold', initial_grant: 9, client_spendable: true }))
        .status,
    ).toBe(201)
    expect(
      (await admin.post('/leaderboards', { key: 'board', name: 'B', scoring: 'last', client_writable: true })).status,
    ).toBe(201)
    const flow = await admin.post('/onboarding/flows', { name: 'F', steps: [{ id: 'one', type: 'input' }] })
    await user.post(`/client/onboarding/${flow.data.id}/start`)
    const refusedBy = async (
      field: string,
      answer: Promise<{ status: number; error?: object | undefined; text: string }>,
    ) => {
      const { status, error, text } = await answer
      expect([status, error], text).toMatchObject([
        400,
        { details: { field, reason: expect.stringContaining('must have at most') } },
      ])
    }
    await refusedBy('properties', user.post('/client/events', `{"event_name":"e","properties":{"a":${long}}}`))
    await refusedBy('properties', user.patch('/client/users/me', `{"properties":{"a":${long}}}`))
    await refusedBy('properties', admin.patch(`/users/${user.id}`, `{"properties":{"a":${long}}}`))
    await refusedBy('metadata', admin.patch('/catalog/sword', `{"metadata":{"a":${long}}}`))
    await refusedBy(
      'metadata',
      user.post('/client/currencies/GOLD/spend', `{"amount":1,"reason":"x","metadata":{"a":${long}}}`),
    )
    await refusedBy('metadata', user.post('/client/leaderboards/board/scores', `{"score":1,"metadata":{"a":${long}}}`))
    await refusedBy('reward_referee', admin.post('/referrals', `{"reward_referee":{"a":${long}}}`))
    await refusedBy('default_value', admin.patch('/flags/f', `{"default_value":{"a":${long}}}`))
    await refusedBy('attributes', user.post('/client/flags/evaluate', `{"attributes":{"a":${long}}}`))
    await refusedBy('answers', user.post(`/client/onboarding/${flow.data.id}/advance`, `{"answers":{"a":${long}}}`))
    await refusedBy(
      'steps',
      admin.post('/onboarding/flows', `{"name":"F","steps":[{"type":"custom","config":{"a":${list(300)}}}]}`),
    )
    await refusedBy('schema', admin.put('/events/definitions/e', `{"schema":{"enum":${long}}}`))
    const rules = `{"source":"property","column":"a","op":"in","value":${long}}`
    await refusedBy('rules', admin.post('/segments', `{"key":"s","name":"S","rules":${rules}}`))
  })

  test('of an event that is taken are shown, and a page of them is bounded', async () => {
    const answer = await user.post('/client/events', `{"event_name":"e","properties":{"a":${list(32)}}}`)
    expect(answer.status).toBe(201)
    expect((await admin.get('/events?event_name=e')).text.length).toBeGreaterThan(32_000)
  })

  test('of JSON in a query', async () => {
    const query = (text: string) => encodeURIComponent(text)
    const filter = `{"column":"meta","op":"eq","value":${list(1_100)}}`
    for (const path of [`${rows}?query=${query(`{"filter":${filter}}`)}`, `${rows}/count?filter=${query(filter)}`])
      expect(await user.get(path)).toMatchObject({ status: 400, error: { code: 'INVALID_JSON' } })
    const where = query(`{"column":"a","op":"in","value":${list(1_100)}}`)
    expect(await admin.get(`/events?where=${where}`)).toMatchObject({
      status: 400,
      error: { code: 'INVALID_INPUT', details: { field: 'where' } },
    })
  })

  test('of a file', async () => {
    const send = (text: string, format = 'ndjson') =>
      sent(
        admin,
        'POST',
        `${ofProject}/collections/${name}/import?format=${format}`,
        text,
        format === 'csv' ? 'text/csv' : 'application/x-ndjson',
      )
    const line = (count: number) => `{"user_id":"${user.id}","meta":${list(count)}}`
    const invalid = { status: 400, error: { code: 'INVALID_BODY', message: expect.stringMatching(/^Line 2: .*1 MB/) } }
    expect(await send(`{"title":"x"}\n${line(1_100)}`)).toMatchObject(invalid)
    expect(await send(`user_id,meta\n${user.id},"${list(1_100)}"`, 'csv')).toMatchObject(invalid)
    // each line is permitted, all of them are more than a file may be
    expect(await send(Array(60).fill(line(1_000)).join('\n'))).toMatchObject({
      status: 413,
      error: { code: 'PAYLOAD_TOO_LARGE' },
    })
  })
})

test('a number with more than 1000 digits on a side of its point is refused', async () => {
  for (const number of ['1e1000', '1e-1001', '9'.repeat(1001), `0.${'1'.repeat(1001)}`])
    expect(await user.patch('/client/users/me', `{"properties":{"a":${number}}}`)).toMatchObject({
      status: 400,
      error: { code: 'INVALID_INPUT', details: { reason: expect.stringContaining('1000 digits') } },
    })
})

test('a number that JavaScript makes infinite deletes nothing', async () => {
  await user.patch('/client/users/me', { properties: { score: 5, other: 1 } })
  const answer = await user.patch('/client/users/me', '{"properties":{"score":1e999}}')
  expect(answer.text).toMatch(/"score" ?: ?10{999}[,}]/)
  expect((await user.patch('/client/users/me', '{"properties":{"score":null}}')).data.properties).toEqual({ other: 1 })
})

describe('keys that JavaScript gives a meaning are keys like any other', async () => {
  const odd = '{"__proto__":{"a":1},"constructor":{"b":12345678901234567890},"toString":1,"n":{"__proto__":1e25}}'
  const kept =
    '{"n": {"__proto__": 10000000000000000000000000}, "toString": 1, "__proto__": {"a": 1}, "constructor": {"b": 12345678901234567890}}'

  test.each([
    ['POST', '/client/groups', '{"name":"odd","metadata":ODD}', user],
    ['POST', `${ofProject}/catalog`, '{"key":"odd","name":"Odd","item_type":"durable","metadata":ODD}', admin],
    ['PATCH', '/client/users/me', '{"properties":ODD}', await project.user()],
    ['POST', '/client/events', '{"event_name":"odd","properties":ODD}', user],
    ['POST', `${ofProject}/config`, '{"key":"odd","value_type":"json","value":ODD}', admin],
    ['POST', rows, '{"meta":ODD}', user],
  ])('%s %s keeps them', async (method, path, text, client) => {
    const response = await fetch(`${harness.url}/v1${path}`, {
      method,
      body: text.replace('ODD', odd),
      headers: { ...client.headers, 'content-type': 'application/json' },
    })
    const answer = await response.text()
    expect(response.status, answer).toBeLessThan(300)
    expect(answer).toContain(kept)
  })

  test('where unknown fields are kept, __proto__ is refused by its name, however it is written', async () => {
    for (const key of ['__proto__', '\\u005f_proto__'])
      for (const [method, path, text, field] of [
        ['PATCH', '/client/users/me', '{"display_name":"Odd","KEY":{"timezone":"Europe/Berlin"}}', '__proto__'],
        [
          'POST',
          `${ofProject}/onboarding/flows`,
          '{"name":"Odd","steps":[{"id":"a"},{"id":"b","KEY":{"type":"info"}}]}',
          'steps.1.__proto__',
        ],
        [
          'POST',
          `${ofProject}/config`,
          '{"key":"odd2","value_type":"string","value":"a","conditions":[{"value":"b","KEY":{"percentage":5}}]}',
          'conditions.0.__proto__',
        ],
      ] as const) {
        const answer = await sent(path.startsWith(ofProject) ? admin : user, method, path, text.replace('KEY', key))
        expect(answer, JSON.stringify(answer)).toMatchObject({ status: 400, error: { details: { field } } })
      }
    expect(({} as Record<string, unknown>)['timezone']).toBeUndefined()
  })

  test('as unknown fields they are left out', async () => {
    for (const name of ['__proto__', 'constructor']) {
      const code = name === 'constructor' ? 'ODD1' : 'ODD2'
      const answer = await sent(
        admin,
        'POST',
        `${ofProject}/currencies`,
        `{"code":"${code}","name":"Odd","${name}":1e400}`,
      )
      expect(answer, JSON.stringify(answer)).toMatchObject({ status: 201 })
    }
  })

  test('a number is no object, however it is spelled', async () => {
    for (const number of ['1', '12345678901234567890', '1e400'])
      expect(await sent(user, 'POST', '/client/groups', `{"name":"odd","metadata":${number}}`)).toMatchObject({
        status: 400,
        error: { code: 'INVALID_INPUT', details: { field: 'metadata', reason: 'must be an object' } },
      })
  })
})
