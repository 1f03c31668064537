import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'
import { Agent, request } from 'undici'
import { type Authority, createLeaf } from '#test/support/https.ts'

export type Account = { readonly email?: string; readonly email_verified?: boolean; readonly name?: string }

/** A certified OpenID provider with pages of its own for sign-in and consent, over TLS. */
export type Oidc = {
  readonly issuer: string
  /** Who signs in by which login; a login that is not here has no address. */
  readonly accounts: Map<string, Account>
  stop(): Promise<void>
}

export const oidcClient = { id: 'trellis', secret: 'a secret of the client' }

export const startOidc = async (authority: Authority, redirectUris: readonly string[]): Promise<Oidc> => {
  const leaf = createLeaf(authority, ['127.0.0.1'])
  let listener: RequestListener = (_request, response) => void response.end()
  const server = createServer({ key: leaf.key, cert: leaf.certificate }, (asked, response) => listener(asked, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const accounts = new Map<string, Account>()
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: oidcClient.id,
        client_secret: oidcClient.secret,
        // callbacks of a test are on http and localhost, which a client of the web may not have
        application_type: 'native',
        token_endpoint_auth_method: 'client_secret_post',
        redirect_uris: redirectUris,
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
    cookies: { keys: ['a key of this test'] },
    findAccount: (_context: unknown, sub: string) => ({
      accountId: sub,
      claims: () => ({ sub, ...accounts.get(sub) }),
    }),
  })
  listener = provider.callback()
  return {
    issuer,
    accounts,
    async stop() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

export type Visit = { readonly login?: string; readonly aborts?: boolean }

export type Browser = {
  /** Opens an address, signs in and consents on the pages that come, and returns the address of the app that it is sent to. */
  visit(url: string, visit?: Visit): Promise<string>
  close(): Promise<void>
}

/** A browser without pages: redirects, cookies and forms. What begins with one of `apps` is opened by an app, not by the browser. */
export const createBrowser = (caFile: string, apps: readonly string[]): Browser => {
  const agent = new Agent({ connect: { ca: readFileSync(caFile, 'utf8') } })
  const jar = new Map<string, Map<string, string>>()
  const cookiesOf = (url: URL) => {
    const known = jar.get(url.origin) ?? new Map<string, string>()
    jar.set(url.origin, known)
    return known
  }
  const send = async (url: URL, form?: URLSearchParams) => {
    const cookies = cookiesOf(url)
    const response = await request(url, {
      dispatcher: agent,
      method: form ? 'POST' : 'GET',
      headers: {
        cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
        ...(form ? { 'content-type': 'application/x-www-form-urlencoded' } : {}),
      },
      ...(form ? { body: form.toString() } : {}),
    })
    for (const set of [response.headers['set-cookie'] ?? []].flat()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      if (value) cookies.set(name, value)
      else cookies.delete(name)
    }
    return { location: response.headers['location'] as string | undefined, text: await response.body.text() }
  }
  return {
    async visit(start, { login = 'ada', aborts = false } = {}) {
      let url = new URL(start)
      let form: URLSearchParams | undefined
      for (let step = 0; step < 20; step++) {
        const { location, text } = await send(url, form)
        form = undefined
        if (location !== undefined) {
          url = new URL(location, url)
          if (apps.some((app) => url.href.startsWith(app))) return url.href
          continue
        }
        const action = /<form[^>]*action="([^"]+)"/.exec(text)?.[1]
        const abort = /href="([^"]+\/abort)"/.exec(text)?.[1]
        if (!action) throw new Error(`no way on from ${url.pathname}: ${text.slice(0, 300)}`)
        url = new URL(aborts && abort ? abort : action, url)
        const prompt = text.includes('name="login"') ? { prompt: 'login', login, password: 'x' } : { prompt: 'consent' }
        if (!(aborts && abort)) form = new URLSearchParams(prompt)
      }
      throw new Error('too many redirects')
    },
    close: () => agent.close(),
  }
}
