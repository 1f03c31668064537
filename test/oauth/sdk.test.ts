import { createHash, randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { appAddress, startOauthStage } from '#test/support/oauth.ts'
import { appOf, device } from '#test/support/sdk.ts'
import { newEmail } from '#test/support/sign_in.ts'
import { createRedirectSignIn } from '../../sdk/src/index.ts'
import { sha256 } from '../../sdk/src/sha256.ts'

const { harness, oidc, project, newBrowser } = await startOauthStage()
const newLogin = () => {
  const login = `login-${randomUUID()}`
  oidc.accounts.set(login, { email: newEmail(), email_verified: true })
  return login
}

test('SHA-256 is that of Node, at every length around a block', () => {
  for (let length = 0; length < 200; length += 1) {
    const text = 'abcdefghij~'.repeat(20).slice(0, length)
    expect(sha256(text)).toEqual([...createHash('sha256').update(text).digest()])
  }
})

test('an anonymous user signs in by redirect, also after a restart, and brings the progress along', async () => {
  const store = device()
  const first = appOf(harness, project, { store })
  const { userId: anonymous } = await first.app.ensureSignedIn()
  const url = await createRedirectSignIn(first.app).begin('acme', { redirectTo: appAddress, loginHint: 'ada' })
  expect(new URL(url).searchParams.get('login_hint')).toBe('ada')
  const address = await newBrowser().visit(url, { login: newLogin() })
  const again = appOf(harness, project, { store })
  const session = await createRedirectSignIn(again.app).finish(address, { merge: true })
  expect(session.userId).not.toBe(anonymous)
  expect(session.anonymousId).toBeNull()
  expect((await again.app.session())?.userId).toBe(session.userId)
  expect(await project.sql('select from app.users where id = $1', [anonymous])).toHaveLength(0)
  expect([...store.values.keys()].filter((key) => key.endsWith(':redirect'))).toEqual([])
  // the code is spent, and so is the verifier
  await expect(createRedirectSignIn(again.app).finish(address)).rejects.toMatchObject({ code: 'FLOW_NOT_FOUND' })
})

test('the code alone finishes it; a code from elsewhere does not', async () => {
  const [own, other] = [appOf(harness, project), appOf(harness, project)]
  const [mine, theirs] = [createRedirectSignIn(own.app), createRedirectSignIn(other.app)]
  const visit = async (url: string) =>
    new URL(await newBrowser().visit(url, { login: newLogin() })).searchParams.get('code') ?? ''
  const code = await visit(await mine.begin('acme'))
  const slipped = await visit(await theirs.begin('acme'))
  await expect(theirs.finish(code)).rejects.toMatchObject({ status: 400, code: 'CODE_VERIFIER_INVALID' })
  expect(await other.app.session()).toBeNull()
  await expect(appOf(harness, project).app.session()).resolves.toBeNull()
  await expect(createRedirectSignIn(appOf(harness, project).app).finish(slipped)).rejects.toMatchObject({
    code: 'FLOW_NOT_FOUND',
  })
  expect((await mine.finish(await visit(await mine.begin('acme')))).userId).toBeDefined()
})

test('what the address says is thrown', async () => {
  const redirect = createRedirectSignIn(appOf(harness, project).app)
  const url = await redirect.begin('acme', { redirectTo: appAddress })
  const given = await newBrowser().visit(url, { aborts: true })
  await expect(redirect.finish(given)).rejects.toMatchObject({
    code: 'access_denied',
    message: 'End-User aborted interaction',
    details: { error_code: 'bad_oauth_callback' },
  })
  await expect(redirect.finish('https://app.example.com/signed-in')).rejects.toMatchObject({
    code: 'UNEXPECTED_ANSWER',
  })
  await expect(redirect.begin('nobody')).rejects.toMatchObject({ code: 'PROVIDER_UNKNOWN' })
})

test('an address that another app opens, with a code of nobody or a broken one, ends nothing', async () => {
  const redirect = createRedirectSignIn(appOf(harness, project).app)
  const url = await redirect.begin('acme', { redirectTo: appAddress })
  for (const address of [`${appAddress}?code=nobody`, `${appAddress}?code=%E0%A4`])
    await expect(redirect.finish(address)).rejects.toMatchObject({ code: 'FLOW_NOT_FOUND', status: 404 })
  const stranger = createRedirectSignIn(appOf(harness, project).app)
  const slipped = await newBrowser().visit(await stranger.begin('acme', { redirectTo: appAddress }), {
    login: newLogin(),
  })
  await expect(redirect.finish(slipped)).rejects.toMatchObject({ code: 'CODE_VERIFIER_INVALID' })
  const address = await newBrowser().visit(url, { login: newLogin() })
  expect((await redirect.finish(address)).userId).toBeDefined()
})

test('an answer that is lost leaves the verifier for another attempt', async () => {
  const { app, net, store } = appOf(harness, project, { retries: 0 })
  const redirect = createRedirectSignIn(app)
  const address = await newBrowser().visit(await redirect.begin('acme'), { login: newLogin() })
  net.isOffline = true
  await expect(redirect.finish(address)).rejects.toMatchObject({ code: 'NETWORK_ERROR' })
  net.isOffline = false
  expect((await redirect.finish(address)).userId).toBeDefined()
  expect([...(store as ReturnType<typeof device>).values.keys()].some((key) => key.endsWith(':redirect'))).toBe(false)
})
