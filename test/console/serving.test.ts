import { expect, test } from 'vitest'
import { freshIp, startHarness } from '#test/support/harness.ts'

/** The console's files and its session, over HTTP. */
const harness = await startHarness()
const at = (path: string, init: RequestInit = {}) => fetch(`${harness.url}${path}`, init)

const post = (way: string, body: object, headers: Record<string, string> = {}) =>
  at(`/console/session/${way}`, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', ...headers },
  })
const cookiesOf = (response: Response) => response.headers.getSetCookie()
const cookieOf = (response: Response) => cookiesOf(response)[0] ?? ''
const former = '__Secure-trellis_console=; Path=/console/session; Max-Age=0; HttpOnly; Secure; SameSite=Strict'
const person = (name: string) => ({
  email: `${name}-${crypto.randomUUID()}@example.com`,
  password: 'a long passphrase here',
})

test('every path of the console is its page, with a policy that allows nothing inline', async () => {
  const page = await at('/console/projects/x/streaks')
  const html = await page.text()
  expect(page.status).toBe(200)
  const policy = page.headers.get('content-security-policy') ?? ''
  expect(policy).toContain("script-src 'self'")
  expect(policy).not.toContain('unsafe')
  expect(html).not.toMatch(/<script(?![^>]* src=)|<style|style=/)
  expect(await (await at('/console')).text()).toBe(html)
  const etag = page.headers.get('etag') ?? ''
  expect((await at('/console', { headers: { 'if-none-match': etag } })).status).toBe(304)
  const head = await at('/console', { method: 'HEAD' })
  expect([head.status, await head.text()]).toEqual([200, ''])
})

test('assets are immutable and packed, 250 KB at most, and a name that is none is 404', async () => {
  const html = await (await at('/console')).text()
  const names = [...html.matchAll(/"(\/console\/assets\/[^"]+)"/g)].map(([, name = '']) => name)
  expect(names).toHaveLength(2)
  let size = 0
  for (const name of names) {
    const asset = await at(name, { headers: { 'accept-encoding': 'gzip' } })
    expect(asset.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(asset.headers.get('content-encoding')).toBe('gzip')
    size += Number(asset.headers.get('content-length'))
    const again = await at(name, { headers: { 'if-none-match': asset.headers.get('etag') ?? '' } })
    expect(again.status).toBe(304)
  }
  expect(size).toBeGreaterThan(1000)
  expect(size).toBeLessThan(250_000)
  expect((await at('/console/assets/main-NONE.js')).status).toBe(404)
})

test.for([
  ['br', 'br'],
  ['gzip, deflate, br', 'br'],
  ['br;q=0, gzip', 'gzip'],
  ['br;q=0', null],
  ['br;q=0.2, gzip;q=0.8', 'gzip'],
  ['gzip;q=0.0, br;q=0', null],
  ['identity', null],
  ['', null],
] as const)('an asset for whoever accepts %j', async ([accepted, encoding]) => {
  const [, name = ''] = /"(\/console\/assets\/[^"]+\.js)"/.exec(await (await at('/console')).text()) ?? []
  const asset = await at(name, { headers: { 'accept-encoding': accepted } })
  expect([asset.status, asset.headers.get('content-encoding')]).toEqual([200, encoding])
})

test('a session: the refresh token is in the cookie alone, is replaced, and ends', async () => {
  const made = await post('signup', person('ada'))
  expect(made.status).toBe(201)
  expect(cookieOf(made)).toMatch(
    /^__Host-trellis_console=[\w.-]+; Path=\/; Max-Age=\d+; HttpOnly; Secure; SameSite=Strict$/,
  )
  const { data } = (await made.json()) as { data: Record<string, string> }
  expect(Object.keys(data).sort()).toEqual(['access_token', 'developer'])
  const cookie = cookieOf(made).split(';')[0] ?? ''
  const next = await post('refresh', {}, { cookie })
  expect(next.status).toBe(200)
  expect(Object.keys(((await next.json()) as { data: object }).data)).toEqual(['access_token'])
  const second = cookieOf(next).split(';')[0] ?? ''
  expect(second).not.toBe(cookie)
  const out = await post('logout', {}, { cookie: second })
  expect(cookieOf(out)).toContain('Max-Age=0')
  const after = await post('refresh', {}, { cookie: second })
  expect(after.status).toBe(401)
  expect(cookieOf(after)).toContain('Max-Age=0')
  expect((await post('refresh', {})).status).toBe(401)
  // what a former version set goes with every answer that sets a cookie
  for (const answer of [made, next, out]) expect(cookiesOf(answer)[1]).toBe(former)
})

test('a renewal whose answer never arrived may be asked for again for a minute; later, and for programs, that ends the session', async () => {
  const begun = async () => {
    harness.setTime('2026-11-01T12:00:00Z')
    const first = cookieOf(await post('signup', person('ada'), { 'x-forwarded-for': freshIp() })).split(';')[0] ?? ''
    expect((await post('refresh', {}, { cookie: first })).status).toBe(200)
    return first
  }
  const codeOf = async (response: Response) => [response.status, ((await response.json()) as any).error?.code]
  const cookie = await begun()
  harness.setTime('2026-11-01T12:00:59Z')
  const again = await post('refresh', {}, { cookie })
  expect(again.status).toBe(200)
  // the minute begins with the first replacement: whoever repeats does not make it longer
  harness.setTime('2026-11-01T12:01:00Z')
  expect(await codeOf(await post('refresh', {}, { cookie }))).toEqual([401, 'REFRESH_TOKEN_REUSED'])
  const current = cookieOf(again).split(';')[0] ?? ''
  expect(await codeOf(await post('refresh', {}, { cookie: current }))).toEqual([401, 'INVALID_TOKEN'])
  // the last but one is not the last
  const older = await begun()
  const repeated = await post('refresh', {}, { cookie: older })
  const next = cookieOf(repeated).split(';')[0] ?? ''
  expect((await post('refresh', {}, { cookie: next })).status).toBe(200)
  expect(await codeOf(await post('refresh', {}, { cookie: older }))).toEqual([401, 'REFRESH_TOKEN_REUSED'])
  const direct = await at('/v1/auth/developer/refresh', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ refresh_token: (await begun()).split('=')[1] }),
  })
  expect(await codeOf(direct)).toEqual([401, 'REFRESH_TOKEN_REUSED'])
  harness.setTime(null)
})

test('renewals count for the session, not for the address: an office of many goes on where one of them has used up hers', async () => {
  const ip = { 'x-forwarded-for': freshIp() }
  const begun = async (name: string) =>
    cookieOf(await post('signup', person(name), { 'x-forwarded-for': freshIp() })).split(';')[0] ?? ''
  const people = await Promise.all(Array.from({ length: 32 }, (_, n) => begun(`p${n}`)))
  const statuses = await Promise.all(
    people.map(async (cookie) => (await post('refresh', {}, { cookie, ...ip })).status),
  )
  expect(statuses).toEqual(people.map(() => 200))
  let cookie = await begun('busy')
  const first = cookie
  for (let n = 0; n < 30; n += 1) {
    const answer = await post('refresh', {}, { cookie, ...ip })
    expect(answer.status).toBe(200)
    cookie = cookieOf(answer).split(';')[0] ?? ''
  }
  const beyond = await post('refresh', {}, { cookie, ...ip })
  expect([beyond.status, ((await beyond.json()) as any).error.code]).toEqual([429, 'RATE_LIMIT_EXCEEDED'])
  expect(Number(beyond.headers.get('retry-after'))).toBeGreaterThan(0)
  // it keeps its cookie, and its allowance is not that of an address
  expect(cookieOf(beyond)).toBe('')
  expect((await post('refresh', {}, { cookie: first, 'x-forwarded-for': freshIp() })).status).toBe(429)
  expect((await post('refresh', {}, { cookie: await begun('other'), ...ip })).status).toBe(200)
})

test('who guesses refresh tokens is limited by the address, and so are programs with a valid one', async () => {
  const guess = async (ip: string, n: number) =>
    (await post('refresh', {}, { cookie: `__Host-trellis_console=guess-${n}`, 'x-forwarded-for': ip })).status
  const ip = freshIp()
  const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => guess(ip, n)))
  expect(answers.filter((status) => status === 401)).toHaveLength(30)
  expect(answers.filter((status) => status === 429)).toHaveLength(10)
  expect(await guess(freshIp(), 0)).toBe(401)
  // neither does a header of a client say that it is the console
  const [, token = ''] = cookieOf(await post('signup', person('cli'))).split(/[=;]/)
  const direct = await at('/v1/auth/developer/refresh', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': ip, 'x-trellis-console': 'yes' },
    body: JSON.stringify({ refresh_token: token }),
  })
  expect(direct.status).toBe(429)
})

test('a cookie that a sibling host could set is no session: one of the former name, or a second of the name', async () => {
  const cookies = await Promise.all(
    ['attacker', 'victim'].map(async (name) => cookieOf(await post('signup', person(name))).split(';')[0] ?? ''),
  )
  const [attacker = '', victim = ''] = cookies
  const formerName = attacker.replace('__Host-', '__Secure-')
  for (const cookie of [formerName, `${attacker}; ${victim}`, `__Host-trellis_console=x; ${victim}`]) {
    const answer = await post('refresh', {}, { cookie })
    expect([answer.status, cookiesOf(answer)]).toEqual([401, []])
  }
  const answer = await post('refresh', {}, { cookie: `${formerName}; ${victim}` })
  const { data } = (await answer.json()) as { data: { access_token: string } }
  const me = await at('/v1/auth/developer/me', { headers: { authorization: `Bearer ${data.access_token}` } })
  expect(((await me.json()) as { data: { email: string } }).data.email).toContain('victim')
})

test('the page says whether this server has a GitHub application, and offers it only then', async () => {
  expect(await (await at('/console')).text()).not.toContain('data-github')
  const other = await startHarness({ env: { GITHUB_CLIENT_ID: 'id', GITHUB_CLIENT_SECRET: 'secret' } })
  expect(await (await fetch(`${other.url}/console`)).text()).toContain('data-github="true"')
})

test('refusals of the API pass as they are; a page of another origin is refused', async () => {
  const wrong = await post('login', person('nobody'))
  expect([wrong.status, ((await wrong.json()) as any).error.code]).toEqual([401, 'INVALID_CREDENTIALS'])
  expect(cookieOf(wrong)).toBe('')
  for (const headers of [{ 'sec-fetch-site': 'same-site' }, { origin: 'https://evil.example' }]) {
    const foreign = await post('signup', person('eve'), headers as Record<string, string>)
    expect([foreign.status, ((await foreign.json()) as any).error.code]).toEqual([403, 'FORBIDDEN'])
    expect(cookieOf(foreign)).toBe('')
  }
})
