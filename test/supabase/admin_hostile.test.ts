import { expect, test } from 'vitest'
import { newEmail, password, startStage } from '#test/support/sign_in.ts'

const { harness, project } = await startStage()
await project.admin.patch('', { rest_enabled: true })

const ask = async (method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
  const response = await fetch(`${harness.url}/auth/v1/admin/users${path}`, {
    method,
    headers: { apikey: project.serverKey, 'content-type': 'application/json', ...headers },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  const answered: any = await response.json()
  return { status: response.status, code: answered.error_code, field: answered.details?.field, id: answered.id }
}

test.each([
  ['an object', { toString: 1 }],
  ['a list', ['none']],
  ['a number', 1],
  ['null', null],
])('the duration of a ban that is %s is refused', async (_what, ban_duration) => {
  expect(await ask('POST', '', { email: newEmail(), ban_duration })).toMatchObject({
    status: 400,
    code: 'validation_failed',
    field: 'ban_duration',
  })
})

test('a user without any address is not made, however it is written', async () => {
  for (const body of [{}, { email: null }, { phone: null }, { email: '' }, { email: null, phone: '' }])
    expect(await ask('POST', '', body), JSON.stringify(body)).toMatchObject({ status: 400, field: 'email' })
})

test('a soft deletion is refused in whatever form it is asked for, and deletes nobody', async () => {
  const { id } = await ask('POST', '', { email: newEmail() })
  for (const should_soft_delete of [true, 'true', 1, 'false', {}])
    expect(await ask('DELETE', `/${id}`, { should_soft_delete })).toMatchObject({
      status: 400,
      field: 'should_soft_delete',
    })
  expect((await ask('GET', `/${id}`)).id).toBe(id)
  expect((await ask('DELETE', `/${id}`, { should_soft_delete: false })).status).toBe(200)
})

test('a server key in the name of a user administers nobody', async () => {
  const { id } = await ask('POST', '', { email: newEmail() })
  const asUser = { 'x-on-behalf-of': id }
  for (const answer of [
    await ask('GET', '', undefined, asUser),
    await ask('POST', '', { email: newEmail() }, asUser),
    await ask('PUT', `/${id}`, { ban_duration: '876000h' }, asUser),
    await ask('DELETE', `/${id}`, {}, asUser),
  ])
    expect(answer).toMatchObject({ status: 403, code: 'not_admin' })
  expect((await ask('GET', `/${id}`)).id).toBe(id)
})

test('of four who ask at once for a link of a new address each gets one, of the same user', async () => {
  const email = newEmail()
  const made = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const response = await fetch(`${harness.url}/auth/v1/admin/generate_link`, {
        method: 'POST',
        headers: { apikey: project.serverKey, 'content-type': 'application/json' },
        body: JSON.stringify({ type: 'magiclink', email }),
      })
      return { status: response.status, ...((await response.json()) as { id: string; hashed_token: string }) }
    }),
  )
  expect(made.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  expect(new Set(made.map(({ id }) => id)).size).toBe(1)
  expect(new Set(made.map(({ hashed_token }) => hashed_token)).size).toBe(4)
})

test('a user who is banned from the start was never another one, and is made at once or not at all', async () => {
  const made = async (fields: object) => {
    const response = await fetch(`${harness.url}/auth/v1/admin/users`, {
      method: 'POST',
      headers: { apikey: project.serverKey, 'content-type': 'application/json' },
      body: JSON.stringify({ email: newEmail(), ...fields }),
    })
    return (await response.json()) as { id: string; email: string; banned_until?: string }
  }
  const user = await made({ password, ban_duration: '876000h' })
  expect(user).toHaveProperty('banned_until')
  const signedIn = await project.app.post('/client/auth/email/login', { email: user.email, password })
  expect([signedIn.status, signedIn.error?.code]).toEqual([403, 'USER_BANNED'])
  // a change of the ban would be one of its own
  const rows = await project.sql(
    `select e.action from app.audit_events e where e.target_id = $1 and e.action <> 'users.password'`,
    [user.id],
  )
  expect(rows).toEqual([{ action: 'users.create' }])
  expect(await made({ ban_duration: 'none' })).not.toHaveProperty('banned_until')
})

/** As it is written: a client's own JSON would have changed the numbers. */
const numbersOf = async (method: string, path: string, fields: string) => {
  const response = await fetch(`${harness.url}/auth/v1/${path}`, {
    method,
    headers: { apikey: project.serverKey, 'content-type': 'application/json' },
    body: fields,
  })
  return { status: response.status, text: await response.text() }
}

test('numbers of metadata stay as they are written', async () => {
  const metadata = '{"a":9007199254740993,"b":[1e400],"c":0.1,"d":{"e":-12345678901234567890.5}}'
  const { status, text } = await numbersOf(
    'POST',
    'admin/users',
    `{"email":"${newEmail()}","user_metadata":${metadata}}`,
  )
  expect(status, text).toBe(200)
  const { id } = JSON.parse(text) as { id: string }
  const [{ properties }] = await project.sql('select properties::text from app.users where id = $1', [id])
  const read = await fetch(`${harness.url}/auth/v1/admin/users/${id}`, { headers: { apikey: project.serverKey } })
  for (const shown of [text, await read.text(), properties as string]) {
    expect(shown).toMatch(/"a": ?9007199254740993,/)
    expect(shown).toMatch(/"b": ?\[10{400}\]/)
    expect(shown).toMatch(/"e": ?-12345678901234567890\.5/)
  }
  const updated = await numbersOf('PUT', `admin/users/${id}`, '{"user_metadata":{"a":9007199254740995}}')
  expect(updated.text).toMatch(/"a":9007199254740995,/)
  for (const wrong of ['1e400', '12345678901234567890'])
    expect((await numbersOf('PUT', `admin/users/${id}`, `{"user_metadata":${wrong}}`)).status).toBe(400)
})
