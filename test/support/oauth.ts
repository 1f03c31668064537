import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { OAuth2Server } from 'oauth2-mock-server'
import { afterAll, expect } from 'vitest'
import type { Harness, HarnessOptions, Project } from '#test/support/harness.ts'
import { startHarness } from '#test/support/harness.ts'
import { createAuthority, createLeaf } from '#test/support/https.ts'
import { type Browser, createBrowser, type Oidc, oidcClient, startOidc, type Visit } from '#test/support/oidc.ts'
import { runFolder } from '#test/support/run.ts'

export const appAddress = 'com.example.orchard://signed-in'
export const webAddress = 'https://orchard.example.com/signed-in'

export type Pkce = { readonly verifier: string; readonly challenge: string }
export const newPkce = (): Pkce => {
  const verifier = randomBytes(32).toString('base64url')
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') }
}

export type OauthStage = {
  readonly harness: Harness
  readonly project: Project
  readonly oidc: Oidc
  /** A provider whose claims a test alters, set as `mock`. */
  readonly mock: OAuth2Server
  newBrowser(): Browser
  /** Begins a sign-in, and answers the address of the provider's page with the verifier. */
  begin(more?: object, at?: Project): Promise<Pkce & { readonly url: string }>
  /** The whole way of a user at a provider: what the app gets at its address, and the verifier that it has kept. */
  way(visit?: Visit & { provider?: string; redirect_to?: string }): Promise<Pkce & { readonly answer: URLSearchParams }>
  exchange(code: string | null, verifier: string, at?: Project): ReturnType<Project['app']['post']>
}

type Options = HarnessOptions & {
  /** Variables that the issuer of the mock is set as, in place of Apple's or Google's. */
  readonly issuers?: readonly ('APPLE_ISSUER' | 'GOOGLE_ISSUER')[]
}

/** A server, and two providers over TLS that a project knows: `acme`, a real one with pages, and `mock`. */
export const startOauthStage = async ({ issuers = [], ...options }: Options = {}): Promise<OauthStage> => {
  const authority = createAuthority()
  const caFile = join(await mkdtemp(join(await runFolder(), 'ca-')), 'ca.pem')
  await writeFile(caFile, authority.certificate)
  const leaf = createLeaf(authority, ['localhost', '127.0.0.1'])
  const folder = await mkdtemp(join(await runFolder(), 'mock-'))
  await writeFile(join(folder, 'key.pem'), leaf.key)
  await writeFile(join(folder, 'cert.pem'), leaf.certificate)
  const mock = new OAuth2Server(join(folder, 'key.pem'), join(folder, 'cert.pem'))
  await mock.issuer.keys.generate('RS256')
  await mock.start(0, 'localhost')
  const asIssuers = Object.fromEntries(issuers.map((name) => [name, mock.issuer.url ?? '']))
  const env = { WEBHOOK_CA_FILE: caFile, WEBHOOK_ALLOWED_CIDRS: '127.0.0.1,::1', ...asIssuers, ...options.env }
  const harness = await startHarness({ ...options, env })
  const project = await harness.project()
  const oidc = await startOidc(authority, [`${harness.url}/p/${project.id}/auth/v1/callback`])
  const browsers: Browser[] = []
  afterAll(async () => {
    await Promise.all(browsers.map((browser) => browser.close()))
    await harness.stop()
    await Promise.all([oidc.stop(), mock.stop()])
  })
  const set = (name: string, issuer: string) =>
    project.admin.put(`/oauth/providers/${name}`, {
      issuer,
      client_id: oidcClient.id,
      client_secret: oidcClient.secret,
    })
  expect((await set('acme', oidc.issuer)).status).toBe(201)
  expect((await set('mock', mock.issuer.url ?? '')).status).toBe(201)
  const redirects = { addresses: [webAddress, appAddress, 'https://orchard.example.com/deep/*'] }
  expect((await project.admin.put('/oauth/redirects', redirects)).status).toBe(200)

  const newBrowser = () => {
    const made = createBrowser(caFile, ['com.example.orchard:', 'https://orchard.example.com/'])
    browsers.push(made)
    return made
  }
  const begin: OauthStage['begin'] = async (more = {}, at = project) => {
    const pkce = newPkce()
    const body = { provider: 'acme', code_challenge: pkce.challenge, ...more }
    const begun = await at.app.post('/client/auth/oauth/begin', body)
    expect(begun.status, begun.text).toBe(200)
    return { ...pkce, url: begun.data.url }
  }
  return {
    harness,
    project,
    oidc,
    mock,
    newBrowser,
    begin,
    async way({ provider = 'acme', redirect_to, ...visit } = {}) {
      const { url, ...pkce } = await begin({ provider, ...(redirect_to === undefined ? {} : { redirect_to }) })
      return { ...pkce, answer: new URL(await newBrowser().visit(url, visit)).searchParams }
    },
    exchange: (code, verifier, at = project) =>
      at.app.post('/client/auth/oauth/exchange', { code, code_verifier: verifier }),
  }
}
