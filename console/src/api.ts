import { createDeveloper, type Operation, TrellisError } from '../../sdk/src/index.ts'

/** Whatever the server answers: lists, rows and results are shown by their schemas. */
export type Row = Readonly<Record<string, unknown>>
export type Input = { readonly path?: Row; readonly query?: Row; readonly body?: unknown }
export type Reply = { readonly data: unknown; readonly total?: number; readonly next_cursor?: string | null }

const url = location.origin
// in memory alone: a script of another page or a later visitor finds nothing
let token: string | undefined
const listeners = new Set<(isSignedIn: boolean) => void>()
const tabs = new BroadcastChannel('trellis-console')

const tell = (isSignedIn: boolean) => {
  for (const listener of listeners) listener(isSignedIn)
}
tabs.onmessage = () => {
  token = undefined
  tell(false)
}

export const hasSession = (): boolean => token !== undefined

const visitor = createDeveloper({ url, retries: 1 })
const send = async (call: ReturnType<typeof createDeveloper>['call'], operation: string, input: Input = {}) =>
  (await call(operation as Operation<Input, Reply>, input)) as Reply

/** One tab at a time: a refresh token that is presented twice ends the session. */
export const renew = async (): Promise<boolean> => {
  const work = async () => {
    try {
      const { data } = await send(visitor.call, 'POST /console/session/refresh', { body: {} })
      token = (data as { access_token: string }).access_token
      return true
    } catch (error) {
      if (!(error instanceof TrellisError) || error.status !== 401) throw error
      token = undefined
      tell(false)
      return false
    }
  }
  return navigator.locks ? navigator.locks.request('trellis-console-session', work) : work()
}

const developer = createDeveloper({ url, token: () => token, renew })

/** Calls an operation as the signed-in developer. */
export const call = (operation: string, input?: Input): Promise<Reply> => send(developer.call, operation, input)

/** Calls an operation that needs no session. */
export const callAsVisitor = (operation: string, input?: Input): Promise<Reply> => send(visitor.call, operation, input)

export const signIn = async (way: 'signup' | 'login' | 'code' | 'github', body: Row): Promise<void> => {
  const { data } = await send(visitor.call, `POST /console/session/${way}`, { body })
  token = (data as { access_token: string }).access_token
  tell(true)
}

export const signOut = async (): Promise<void> => {
  await send(visitor.call, 'POST /console/session/logout', { body: {} })
  token = undefined
  tabs.postMessage('signed out')
  tell(false)
}

export const onSession = (listener: (isSignedIn: boolean) => void): (() => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
