import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { reasonOf } from '#server/oauth/sign_ins.ts'
import { newPkce, startOauthStage } from '#test/support/oauth.ts'
import { createBrowser } from '#test/support/oidc.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'

const { harness, oidc, mock, begin, way, exchange, project } = await startOauthStage()
const { admin } = project
const root = `${harness.url}/p/${project.id}/auth/v1`

const open = async (address: string) => {
  const response = await fetch(address, { redirect: 'manual' })
  return { status: response.status, location: response.headers.get('location'), text: await response.text() }
}

test.each([
  'https://[',
  'https://%00',
  'https://login.example.com:99999',
  'https://user:word@login.example.com',
  'https://user@login.example.com',
  'https://login.example.com?a=b',
  'https://login.example.com/#a',
  'https://login.example.com\\a',
])('%s is no issuer', async (issuer) => {
  expectInvalid(await admin.put('/oauth/providers/wrong', { issuer, client_id: 'x' }), 'issuer')
})

test('an issuer may have a port and a path, and stays as it is written', async () => {
  for (const issuer of [
    'https://login.example.com:8443/realms/a',
    'https://login.example.com/',
    'https://LOGIN.example.com',
  ]) {
    const { data } = await admin.put('/oauth/providers/right', { issuer, client_id: 'x' })
    expect(data.issuer).toBe(issuer)
  }
})

test('a method of the challenge that is a word of the language is refused as any other', async () => {
  await admin.patch('', { rest_enabled: true })
  const { challenge } = newPkce()
  for (const method of ['__proto__', 'constructor', 'S512', '%E2%82%AC']) {
    const { status, text } = await open(
      `${root}/authorize?provider=acme&code_challenge=${challenge}&code_challenge_method=${method}`,
    )
    expect([status, JSON.parse(text).error_code], method).toEqual([400, 'validation_failed'])
  }
})

test('an answer of a provider with another question mark in it is read whole', async () => {
  const { url } = await begin()
  const state = new URL(url).searchParams.get('state')
  const { status, location } = await open(
    `${root}/callback?error=access_denied&error_description=Why?+Because&state=${state}`,
  )
  expect(status).toBe(303)
  expect(Object.fromEntries(new URL(location ?? '').searchParams)).toEqual({
    error: 'access_denied',
    error_code: 'bad_oauth_callback',
    error_description: 'Why? Because',
  })
})

test('a HEAD of the callback spends nothing', async () => {
  const state = new URL((await begin()).url).searchParams.get('state')
  const address = `${root}/callback?error=access_denied&state=${state}`
  const looked = await fetch(address, { method: 'HEAD', redirect: 'manual' })
  expect([looked.status, looked.headers.get('location')]).toEqual([404, null])
  const location = new URL((await open(address)).location ?? '')
  expect(location.searchParams.get('error')).toBe('access_denied')
})

test('a HEAD of the address that begins a sign-in begins none', async () => {
  await admin.patch('', { rest_enabled: true })
  const flows = () => project.sql('select count(*)::int as count from app.oauth_flows')
  const address = `${root}/authorize?provider=acme&code_challenge=${newPkce().challenge}`
  const before = await flows()
  const looked = await fetch(address, { method: 'HEAD', redirect: 'manual' })
  expect([looked.status, looked.headers.get('location'), await flows()]).toEqual([404, null, before])
  expect((await open(address)).status).toBe(302)
  expect(await flows()).toEqual([{ count: before[0].count + 1 }])
})

test('a form that is too large is told its limit', async () => {
  const post = async (bytes: number) => {
    const response = await fetch(`${root}/callback`, { method: 'POST', body: 'a'.repeat(bytes) })
    const { error_code, msg } = (await response.json()) as { error_code: string; msg: string }
    return [response.status, error_code, msg]
  }
  expect(await post(64 * 1024 + 1)).toEqual([413, expect.any(String), 'The body has more than 64 KB.'])
  expect((await post(64 * 1024))[0]).toBe(400)
})

test('of twelve callbacks with one state at once, one is answered', async () => {
  const { url, verifier } = await begin()
  // this browser stops where the provider sends it
  const browser = createBrowser(harness.running.services.config.WEBHOOK_CA_FILE ?? '', [`${root}/callback`])
  const callback = await browser.visit(url, { login: 'twelve' })
  await browser.close()
  const answers = await Promise.all(Array.from({ length: 12 }, () => open(callback)))
  const told = answers.map(({ location }) => new URL(location ?? '').searchParams)
  const codes = told.map((one) => one.get('code')).filter((code) => code !== null)
  expect(codes).toHaveLength(1)
  expect(told.filter((one) => one.get('error_code') === 'bad_oauth_state')).toHaveLength(11)
  expect((await exchange(codes[0] ?? null, verifier)).status).toBe(201)
})

test('another issuer ends the sign-ins under way: an id of the former one is nobody of the new one', async () => {
  const set = (issuer: string) =>
    admin.put('/oauth/providers/moved', {
      issuer,
      client_id: 'trellis',
      client_secret: 'a secret of the client',
    })
  await set(oidc.issuer)
  const [atApp, kept] = [await way({ provider: 'moved', login: 'ada' }), await way({ login: 'ada' })]
  const atProvider = await begin({ provider: 'moved' })
  expect((await set(mock.issuer.url ?? '')).status).toBe(200)
  expectRefusal(await exchange(atApp.answer.get('code'), atApp.verifier), 404, 'FLOW_NOT_FOUND')
  const state = new URL(atProvider.url).searchParams.get('state')
  expect((await open(`${root}/callback?code=x&state=${state}`)).status).toBe(400)
  // those of other providers go on, and so do those of a provider that is set anew with its issuer
  expect((await exchange(kept.answer.get('code'), kept.verifier)).status).toBe(201)
  const same = await begin({ provider: 'moved' })
  await set(mock.issuer.url ?? '')
  const told = await open(`${root}/callback?error=x&state=${new URL(same.url).searchParams.get('state')}`)
  expect(told.status).toBe(303)
})

test('a provider that is deleted and set again with another issuer has no sign-ins of before', async () => {
  const set = (issuer: string) =>
    admin.put('/oauth/providers/again', { issuer, client_id: 'trellis', client_secret: 'a secret of the client' })
  await set(oidc.issuer)
  const { answer, verifier } = await way({ provider: 'again', login: 'grace' })
  expect((await admin.delete('/oauth/providers/again')).status).toBe(200)
  await set(mock.issuer.url ?? '')
  expectRefusal(await exchange(answer.get('code'), verifier), 404, 'FLOW_NOT_FOUND')
  expect(await project.sql(`select from app.user_identities where provider = 'again'`)).toEqual([])
})

test('a secret is forgotten with the issuer that it was entered for', async () => {
  const body = { issuer: oidc.issuer, client_id: 'trellis', client_secret: 'a secret of the client' }
  await admin.put('/oauth/providers/kept', body)
  const { client_secret: _, ...rest } = body
  expect((await admin.put('/oauth/providers/kept', { ...rest, client_id: 'other' })).data.has_secret).toBe(true)
  const moved = await admin.put('/oauth/providers/kept', { ...rest, issuer: mock.issuer.url })
  expect([moved.status, moved.data.has_secret]).toEqual([200, false])
  expect((await admin.put('/oauth/providers/kept', rest)).data.has_secret).toBe(false)
})

test('the key of Apple is no secret that is sent, nor a secret a key', async () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const client_secret = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const signing = { client_id: 'com.example', team_id: 'TEAM', signing_key_id: 'KEY' }
  const put = async (body: object) => (await admin.put('/oauth/providers/apple', body)).data.has_secret
  expect(await put({ ...signing, client_secret })).toBe(true)
  expect(await put({ ...signing, signing_key_id: 'OTHER' })).toBe(true)
  expect(await put({ client_id: 'com.example' })).toBe(false)
  expect(await put({ client_id: 'com.example', client_secret: 'a token' })).toBe(true)
  expect(await put(signing)).toBe(false)
})

test('of what a provider answers as its error, a code alone is told and logged', () => {
  expect(reasonOf({ error: 'invalid_client' })).toBe('invalid_client')
  for (const error of ['no client_secret=hidden', 'a\nb', 'x'.repeat(61), ''])
    expect(reasonOf({ error })).toBe('an error that is no code')
})
