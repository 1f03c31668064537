import { afterEach, describe, expect, test } from 'vitest'
import { meetingAt, personalToken, withBearer } from '#test/support/accounts.ts'
import { decideWithoutBrowser } from '#test/support/cli.ts'
import { type Answer, freshIp, startHarness } from '#test/support/harness.ts'
import { openPage } from '#test/support/page_script.ts'

const harness = await startHarness()
const { anyone } = harness
afterEach(() => harness.setTime(null))

const refusalOf = ({ status, error }: Answer) => [status, error?.code]
const start = async (client_name = 'Command line') =>
  (await anyone.post('/auth/developer/device/code', { client_name })).data
const poll = (device_code: string) => anyone.post('/auth/developer/device/token', { device_code })
const later = () => harness.advance(6)

describe('the sign-in of a tool', () => {
  test('waits for a developer, who reads what asks and approves once', async () => {
    const developer = await harness.developer()
    const grant = await start('Tool <b>bold</b>')
    expect(grant).toEqual({
      device_code: expect.stringMatching(/^[\w-]{43}$/),
      user_code: expect.stringMatching(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/),
      verification_uri: expect.stringMatching(/\/device$/),
      expires_in: 600,
      interval: 5,
    })
    expect(refusalOf(await poll(grant.device_code))).toEqual([400, 'AUTHORIZATION_PENDING'])
    const typed = ` ${grant.user_code.toLowerCase().replace('-', ' ')} `
    const found = await developer.post('/auth/developer/device/find', { user_code: typed })
    expect(found.data).toMatchObject({ client_name: 'Tool <b>bold</b>', ip: expect.any(String) })
    const approved = await developer.post('/auth/developer/device/approve', { user_code: typed, approve: true })
    expect(approved.data).toEqual({ approved: true })
    const other = await harness.developer()
    const again = { user_code: grant.user_code, approve: true }
    expect(refusalOf(await other.post('/auth/developer/device/approve', again))).toEqual([404, 'NOT_FOUND'])
    expect(refusalOf(await other.post('/auth/developer/device/find', again))).toEqual([404, 'NOT_FOUND'])
    later()
    const signedIn = await poll(grant.device_code)
    expect(signedIn.status, signedIn.text).toBe(200)
    expect(signedIn.data.developer.id).toBe(developer.id)
    const tool = withBearer(anyone, signedIn.data.access_token)
    expect((await tool.get('/auth/developer/me')).data.token.type).toBe('session')
    later()
    expect(refusalOf(await poll(grant.device_code))).toEqual([400, 'EXPIRED_TOKEN'])
  })

  test('stores neither code', async () => {
    const grant = await start('secrecy')
    const [row] = await harness.control(
      `select to_json(g)::text as text from app.device_grants g where client_name = 'secrecy'`,
    )
    expect(row?.text).not.toContain(grant.device_code)
    expect(row?.text).not.toContain(grant.user_code)
    expect(row?.text).not.toContain(grant.user_code.replace('-', ''))
  })

  test('is refused by the developer, and expires', async () => {
    const developer = await harness.developer()
    const refused = await start()
    const answer = await developer.post('/auth/developer/device/approve', {
      user_code: refused.user_code,
      approve: false,
    })
    expect(answer.data).toEqual({ approved: false })
    expect(refusalOf(await poll(refused.device_code))).toEqual([400, 'ACCESS_DENIED'])
    expect(refusalOf(await poll(refused.device_code))).toEqual([400, 'EXPIRED_TOKEN'])
    const late = await start()
    harness.advance(601)
    const body = { user_code: late.user_code, approve: true }
    expect(refusalOf(await developer.post('/auth/developer/device/approve', body))).toEqual([404, 'NOT_FOUND'])
    expect(refusalOf(await poll(late.device_code))).toEqual([400, 'EXPIRED_TOKEN'])
    expect(refusalOf(await poll('unknown'))).toEqual([400, 'EXPIRED_TOKEN'])
  })

  test('slows a hasty tool down by five seconds each time, also after the approval', async () => {
    harness.setTime(new Date())
    const developer = await harness.developer()
    const { device_code, user_code } = await start()
    expect(refusalOf(await poll(device_code))).toEqual([400, 'AUTHORIZATION_PENDING'])
    harness.advance(4)
    expect(refusalOf(await poll(device_code))).toEqual([400, 'SLOW_DOWN'])
    harness.advance(9)
    expect(refusalOf(await poll(device_code))).toEqual([400, 'SLOW_DOWN'])
    await developer.post('/auth/developer/device/approve', { user_code, approve: true })
    harness.advance(14)
    expect(refusalOf(await poll(device_code))).toEqual([400, 'SLOW_DOWN'])
    harness.advance(20)
    expect((await poll(device_code)).status).toBe(200)
  })

  test('of two polls at once one signs in', async () => {
    const developer = await harness.developer()
    const { device_code, user_code } = await start()
    await developer.post('/auth/developer/device/approve', { user_code, approve: true })
    const answers = await meetingAt(harness, 'app.device_grants', () => [poll(device_code), poll(device_code)])
    expect(answers.map(({ status }: Answer) => status).sort()).toEqual([200, 400])
  })

  test('ends with a new password, before it is a session', async () => {
    const developer = await harness.developer()
    const { device_code, user_code } = await start()
    await developer.post('/auth/developer/device/approve', { user_code, approve: true })
    const changed = await developer.patch('/auth/developer/me', {
      password: 'another long passphrase',
      current_password: 'a long passphrase',
    })
    expect(changed.status).toBe(200)
    expect(refusalOf(await poll(device_code))).toEqual([400, 'EXPIRED_TOKEN'])
  })

  test('is approved by a person, never by a token', async () => {
    const developer = await harness.developer()
    const { user_code } = await start()
    const { token } = await personalToken(developer)
    const held = withBearer(anyone, token)
    const body = { user_code, approve: true }
    expect(refusalOf(await held.post('/auth/developer/device/approve', body))).toEqual([403, 'SESSION_REQUIRED'])
    expect(refusalOf(await held.post('/auth/developer/device/find', body))).toEqual([403, 'SESSION_REQUIRED'])
  })
})

describe('guessing', () => {
  test('is bounded for an account', async () => {
    const developer = await harness.developer()
    // the client asks from another address each time
    const guess = (route: string) =>
      developer.post(`/auth/developer/device/${route}`, { user_code: 'BBBB-BBBB', approve: true })
    for (let n = 0; n < 10; n++) {
      expect((await guess('find')).status).toBe(404)
      expect((await guess('approve')).status).toBe(404)
    }
    expect(refusalOf(await guess('find'))).toEqual([429, 'RATE_LIMIT_EXCEEDED'])
    expect(refusalOf(await guess('approve'))).toEqual([429, 'RATE_LIMIT_EXCEEDED'])
  })

  test('codes are made ten times in a minute for an address, and polled 120 times', async () => {
    const here = anyone.with({ 'x-forwarded-for': freshIp() })
    for (let n = 0; n < 10; n++) {
      expect((await here.post('/auth/developer/device/code', { client_name: 'x' })).status).toBe(200)
    }
    expect(refusalOf(await here.post('/auth/developer/device/code', { client_name: 'x' }))).toEqual([
      429,
      'RATE_LIMIT_EXCEEDED',
    ])
    const polls = await Promise.all(
      Array.from({ length: 121 }, () => here.post('/auth/developer/device/token', { device_code: 'x' })),
    )
    expect(polls.filter(({ status }) => status === 429)).toHaveLength(1)
  })
})

test('the page loads nothing from elsewhere, allows its own script alone, and labels its fields', async () => {
  const response = await fetch(`${harness.url}/device`)
  const page = await response.text()
  const policy = response.headers.get('content-security-policy') ?? ''
  expect(policy).toContain("default-src 'none'")
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).not.toContain('unsafe-inline')
  expect(page).not.toMatch(/(src|href)=|https?:/)
  for (const [, input] of page.matchAll(/(.{0,80}<input[^>]*>)/g)) expect(input).toContain('<label>')
  expect(response.headers.get('cache-control')).toBe('no-store')
})

describe('at the page, its own script', () => {
  test('approves for the button Approve, and refuses for the button Refuse', async () => {
    const developer = await harness.developer()
    for (const [approve, answer] of [
      [true, 200],
      [false, 400],
    ] as const) {
      const { device_code, user_code } = await start('Tool <b>bold</b>')
      const { tool, said } = await decideWithoutBrowser(`${harness.url}/device`, developer, user_code, approve)
      expect(tool).toBe('Tool <b>bold</b>')
      expect(said).toContain(approve ? 'is signed in' : 'was refused')
      expect((await poll(device_code)).status).toBe(answer)
    }
  })

  test('mails a code for that button, and says what is wrong', async () => {
    const developer = await harness.developer()
    const page = await openPage(`${harness.url}/device`)
    page.fill(0, { user_code: 'BBBB-BBBB', email: developer.email, password: 'a long passphrase' })
    await page.press(0, 'Mail me a code')
    expect(page.text('output')).toContain('a code is on its way')
    await page.press(0, 'Continue')
    expect([page.isHidden(0), page.isHidden(1)]).toEqual([false, true])
    expect(page.text('output')).not.toContain('One moment')
  })
})
