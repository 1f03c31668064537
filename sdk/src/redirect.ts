import type { App } from './app.ts'
import { isRefusal, TrellisError } from './errors.ts'
import { beginRedirectSignIn, finishRedirectSignIn, linkByRedirect } from './generated/client.ts'
import { hasSecureRandom, randomBytes } from './platform.ts'
import type { Session } from './session.ts'
import { sha256 } from './sha256.ts'

export type RedirectOptions = {
  /** One of the redirect addresses of the project; by default the first one. */
  readonly redirectTo?: string | undefined
  /** What is asked of the provider beside the usual. */
  readonly scopes?: readonly string[] | undefined
  /** An address that the provider fills in. */
  readonly loginHint?: string | undefined
  /** What the provider asks again, such as `select_account`. */
  readonly prompt?: string | undefined
}

export type RedirectSignIn = {
  /** Begins a sign-in, and answers the address to open: `location.href = url` in a page, the system's browser in an app. */
  begin(provider: string, options?: RedirectOptions): Promise<string>
  /** As `begin`, for the signed-in user: `finish` links what the provider says to the same user. */
  link(provider: string, options?: RedirectOptions): Promise<string>
  /**
   * Finishes it with the address that the browser returned to, or the `code` in it. Throws what the provider or the server refused, by the code in the
   * address. `merge` brings an anonymous user's progress along.
   */
  finish(addressOrCode: string, options?: { merge?: boolean }): Promise<Session>
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Bytes in base64url without padding. */
const encoded = (bytes: readonly number[]): string => {
  let text = ''
  for (let at = 0; at < bytes.length; at += 3) {
    const [a = 0, b = 0, c = 0] = bytes.slice(at, at + 3)
    const bits = (a << 16) | (b << 8) | c
    text += [18, 12, 6, 0].map((by) => alphabet[(bits >> by) & 63]).join('')
  }
  return text.slice(0, Math.ceil((bytes.length * 4) / 3))
}

/** What is not encoded as it should be stays as it is: any app may open an address of this one. */
const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return text
  }
}

/** The query of an address; React Native has no whole `URL`. */
const queryOf = (address: string): Readonly<Record<string, string>> => {
  const [, query = ''] = /\?([^#]*)/.exec(address) ?? []
  const pairs = query.split('&').map((pair) => pair.split('='))
  return Object.fromEntries(pairs.map(([name = '', ...value]) => [name, decoded(value.join('='))]))
}

/** The code of an answer: what comes is an address, or the code alone. */
const codeIn = (addressOrCode: string): string => {
  if (!/[:?]/.test(addressOrCode)) return addressOrCode
  const { code, error, error_code, error_description } = queryOf(addressOrCode)
  if (error !== undefined || code === undefined)
    throw new TrellisError(error ?? 'UNEXPECTED_ANSWER', error_description ?? 'The address has no code.', {
      details: { error_code: error_code ?? null },
    })
  return code
}

/** Said of a code that is none of this sign-in. */
const foreign = ['CODE_VERIFIER_INVALID', 'FLOW_NOT_FOUND']

/** Sign-in at Google, Apple, GitHub or any OpenID provider of the project, in a browser. The verifier of a sign-in (PKCE) stays in the store of the app. */
export const createRedirectSignIn = (app: App): RedirectSignIn => {
  const { store, prefix } = app.inside
  const place = `${prefix}:redirect`
  const start =
    (operation: typeof beginRedirectSignIn): RedirectSignIn['begin'] =>
    async (provider, { redirectTo, scopes, loginHint, prompt } = {}) => {
      if (!hasSecureRandom()) throw new TypeError('A sign-in by redirect needs crypto.getRandomValues.')
      const verifier = encoded([...randomBytes(32)])
      const body = {
        provider,
        code_challenge: encoded(sha256(verifier)),
        ...(redirectTo === undefined ? {} : { redirect_to: redirectTo }),
        ...(scopes === undefined ? {} : { scopes: [...scopes] }),
        ...(loginHint === undefined ? {} : { login_hint: loginHint }),
        ...(prompt === undefined ? {} : { prompt }),
      }
      const { data } = await app.call(operation, { body })
      await store.setItem(place, verifier)
      return data.url
    }
  return {
    begin: start(beginRedirectSignIn),
    link: start(linkByRedirect),
    async finish(addressOrCode, { merge = false } = {}) {
      const code = codeIn(addressOrCode)
      const verifier = await store.getItem(place)
      if (!verifier) throw new TrellisError('FLOW_NOT_FOUND', 'No sign-in was begun here: begin again.')
      try {
        const session = await app.signIn(finishRedirectSignIn, { body: { code, code_verifier: verifier }, merge })
        await store.removeItem(place)
        return session
      } catch (error) {
        // without an answer it may be tried again, and a code from elsewhere ends nothing that was begun here
        const isOver = isRefusal(error) && error.status < 429 && !foreign.includes(error.code)
        if (isOver) await store.removeItem(place)
        throw error
      }
    },
  }
}
