import { refreshDeveloperSession } from '../../sdk/src/generated/admin.ts'
import { type Call, createDeveloper, isRefusal } from '../../sdk/src/index.ts'
import type { Context } from './command.ts'
import { createCredentials } from './credentials.ts'
import { protect, restore } from './exact.ts'
import { CliError, exits, usageError } from './exit.ts'
import { type Server, serverFor } from './settings.ts'
import { version } from './version.ts'

type Fetched = Parameters<typeof fetch>[1]

/** Calls of nobody: the sign-in itself. */
export const callsOf = (url: string): Call => callsWith(url, {})

const callsWith = (url: string, more: object): Call => {
  const agent = `trellis-cli/${version()} node/${process.versions.node}`
  // a redirection would take the token's call to a place that nobody has named
  const send = async (to: string, init: Fetched) => {
    const body = typeof init?.body === 'string' ? { body: restore(init.body) } : {}
    const headers = { ...(init?.headers as object), 'user-agent': agent }
    const reply = await fetch(to, { ...init, ...body, redirect: 'error', headers })
    return { status: reply.status, headers: reply.headers, text: async () => protect(await reply.text()) }
  }
  return createDeveloper({ url, fetch: send as never, ...more }).call
}

const noLogin = (url: string) =>
  new CliError(
    'NOT_SIGNED_IN',
    exits.notSignedIn,
    `Nobody is signed in to ${url}.`,
    'Sign in with trellis login, or set TRELLIS_URL and TRELLIS_TOKEN.',
  )

export type Api = Server & { readonly call: Call; readonly isFromEnvironment: boolean }

/** Calls with the token of the environment, or of the sign-in, which is renewed when it has expired. */
export const apiFor = async (context: Context): Promise<Api> => {
  const { env, terminal } = context
  const server = await serverFor(context)
  const { url } = server
  const given = env['TRELLIS_TOKEN']
  if (given) {
    // a repository of somebody else's must not name where it goes
    if (!server.isNamed) {
      throw usageError(
        'TRELLIS_TOKEN is sent only to the server that --url or TRELLIS_URL names.',
        `Set TRELLIS_URL=${url} if that is the server.`,
      )
    }
    return { ...server, isFromEnvironment: true, call: callsWith(url, { token: given }) }
  }
  const credentials = createCredentials(env)
  let login = await credentials.read(url)
  if (!login) throw noLogin(url)
  const know = () => {
    terminal.hide(login?.access_token)
    terminal.hide(login?.refresh_token)
  }
  know()
  /** A refresh token is taken once: of several programs at a time one renews, and the others use what it got. */
  const renew = () =>
    credentials.alone(async () => {
      const used = login?.access_token
      login = await credentials.read(url)
      know()
      if (!login) throw noLogin(url)
      if (login.access_token !== used) return true
      try {
        const { data } = await callsOf(url)(refreshDeveloperSession, { body: { refresh_token: login.refresh_token } })
        login = { ...login, ...data }
        know()
        await credentials.write(url, login)
        return true
      } catch (error) {
        if (isRefusal(error) && error.status === 401) return false
        throw error
      }
    })
  return { ...server, isFromEnvironment: false, call: callsWith(url, { token: () => login?.access_token, renew }) }
}
