import { QueryClient } from '@tanstack/react-query'
import { type Call, createDeveloper, isTemporary, type Operation, TrellisError } from '../../sdk/src/index.ts'

export { isTemporary, TrellisError }

export type Row = Readonly<Record<string, unknown>>
export type Input = { readonly path?: Row; readonly query?: Row; readonly body?: unknown }
/** What any operation answers, where it is known by its text alone. */
export type Reply = {
  readonly data: unknown
  readonly total?: number
  readonly offset?: number
  readonly next_cursor?: string | null
  readonly pagination?: { readonly next_cursor: string | null; readonly total: number | null }
}

const url = location.origin
// in memory alone: a script of another page or a later visitor finds nothing
let token: string | undefined
type Listener = (isSignedIn: boolean, isByChoice: boolean) => void
const listeners = new Set<Listener>()
const tabs = new BroadcastChannel('trellis-console')

const tell = (isSignedIn: boolean, isByChoice = false) => {
  for (const listener of listeners) listener(isSignedIn, isByChoice)
}
tabs.onmessage = () => {
  token = undefined
  tell(false)
}

export const hasSession = (): boolean => token !== undefined
/** Calls the listener when a session begins or ends, in this tab or in another one; by choice is a sign-out in this tab. */
export const onSession = (listener: Listener): (() => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

const visitor = createDeveloper({ url, retries: 1 })
const send = async (sender: Call, operation: string, input: Input = {}) =>
  (await sender(operation as Operation<Input, Reply>, input)) as Reply

/** Seconds until a refused renewal is tried again: an office behind one address may ask for many at once. */
export const waits = new Set<(seconds: number) => void>()

/** One tab at a time: a refresh token that is presented twice ends the session. Waits where the server asks to. */
export const renew = async (): Promise<boolean> => {
  const work = async (): Promise<boolean> => {
    try {
      const { data } = await send(visitor.call, 'POST /console/session/refresh', { body: {} })
      token = (data as { access_token: string }).access_token
      return true
    } catch (error) {
      if (error instanceof TrellisError && error.status === 429) {
        const seconds = error.retryAfter ?? 5
        for (const wait of waits) wait(seconds)
        await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
        return work()
      }
      if (!(error instanceof TrellisError) || error.status !== 401) throw error
      const wasSignedIn = token !== undefined
      token = undefined
      if (wasSignedIn) tell(false)
      return false
    }
  }
  return navigator.locks ? navigator.locks.request('trellis-console-session', work) : work()
}

const developer = createDeveloper({ url, token: () => token, renew })

/** Calls an operation of the SDK as the signed-in developer. */
export const call: Call = developer.call
/** Calls an operation that is known by its method and path, as `GET /v1/...`. */
export const callAny = (operation: string, input?: Input): Promise<Reply> => send(developer.call, operation, input)
/** Calls an operation that needs no session. */
export const callAsVisitor = (operation: string, input?: Input): Promise<Reply> => send(visitor.call, operation, input)
/** For requests that are not JSON: uploads, exports. */
export const accessToken = (): string | undefined => token

export const signIn = async (way: 'signup' | 'login' | 'code' | 'github', body: Row): Promise<void> => {
  const { data } = await send(visitor.call, `POST /console/session/${way}`, { body })
  token = (data as { access_token: string }).access_token
  tell(true)
}

export const signOut = async (): Promise<void> => {
  await send(visitor.call, 'POST /console/session/logout', { body: {} })
  token = undefined
  tabs.postMessage('signed out')
  tell(false, true)
}

export const queries = new QueryClient({
  defaultOptions: {
    // by default a browser that believes to be offline holds mutations back for ever
    mutations: { networkMode: 'always' },
    queries: {
      networkMode: 'always',
      staleTime: 15_000,
      retry: (tries, error) => tries < 2 && isTemporary(error),
    },
  },
})
