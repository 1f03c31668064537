/**
 * What the SDK needs of its platform, declared here: Node, browsers and React Native have it under the same names, with types that differ.
 */
export type FetchReply = {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body?: unknown
  text(): Promise<string>
}
export type FetchRequest = {
  readonly method: string
  readonly headers: Record<string, string>
  readonly body?: never
  readonly signal?: never
}
export type Fetch = (url: string, init: FetchRequest) => Promise<FetchReply>

/** Tells a call that it is not wanted any more: an AbortSignal. */
export type Signal = {
  readonly aborted: boolean
  readonly reason?: unknown
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

export type Socket = {
  readonly readyState: number
  onopen: (() => void) | null
  onmessage: ((event: { readonly data: unknown }) => void) | null
  onclose: ((event: { readonly code: number; readonly reason: string }) => void) | null
  onerror: (() => void) | null
  send(text: string): void
  close(code?: number): void
}

/** What XMLHttpRequest is for here: the one way to see the progress of an upload in browsers and React Native. */
export type Request = {
  readonly status: number
  readonly upload: { onprogress: ((event: { readonly loaded: number }) => void) | null }
  onload: (() => void) | null
  onerror: (() => void) | null
  open(method: string, url: string): void
  setRequestHeader(name: string, value: string): void
  getResponseHeader(name: string): string | null
  send(body: unknown): void
  abort(): void
}

type Timer = unknown
type Platform = {
  readonly fetch?: Fetch
  readonly AbortController?: new () => { readonly signal: Signal; abort(reason?: unknown): void }
  readonly WebSocket?: new (url: string) => Socket
  readonly XMLHttpRequest?: new () => Request
  readonly crypto?: { getRandomValues?(into: Uint8Array): Uint8Array }
  readonly document?: unknown
  readonly indexedDB?: unknown
  readonly navigator?: { readonly locks?: { request<T>(name: string, work: () => Promise<T>): Promise<T> } }
  readonly console: { warn(...values: unknown[]): void }
  addEventListener?(type: string, listener: () => void): void
  removeEventListener?(type: string, listener: () => void): void
  setTimeout(work: () => void, ms: number): Timer
  clearTimeout(timer: Timer): void
}

/** Where sessions and events are kept: React Native's `AsyncStorage` is such a store as it is. */
export type Store = {
  getItem(key: string): string | null | undefined | Promise<string | null | undefined>
  setItem(key: string, value: string): unknown
  removeItem(key: string): unknown
}

export const platform = globalThis as unknown as Platform

/** Forgets everything when the program ends. */
export const memoryStore = (): Store => {
  const values = new Map<string, string>()
  return {
    getItem: (key) => values.get(key) ?? null,
    setItem: (key, value) => values.set(key, value),
    removeItem: (key) => values.delete(key),
  }
}

/** A timer that does not keep a Node process alive. */
export const later = (work: () => void, ms: number): (() => void) => {
  const timer = platform.setTimeout(work, ms)
  ;(timer as { unref?(): void } | undefined)?.unref?.()
  return () => platform.clearTimeout(timer)
}

export const randomBytes = (count: number): Uint8Array => {
  const bytes = new Uint8Array(count)
  if (platform.crypto?.getRandomValues) return platform.crypto.getRandomValues(bytes)
  for (let index = 0; index < count; index += 1) bytes[index] = Math.floor(Math.random() * 256)
  return bytes
}

export const hasSecureRandom = () => platform.crypto?.getRandomValues !== undefined

/** A UUID of version 4. */
export const newId = (): string => {
  const bytes = randomBytes(16)
  bytes[6] = ((bytes[6] ?? 0) & 15) | 64
  bytes[8] = ((bytes[8] ?? 0) & 63) | 128
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

const running = new Map<string, Promise<unknown>>()

/** One at a time by name: within the program, and with Web Locks across the tabs of an origin. */
export const exclusively = <T>(name: string, work: () => Promise<T>): Promise<T> => {
  const { locks } = platform.navigator ?? {}
  const before = running.get(name) ?? Promise.resolve()
  const turn = before.then(
    () => (locks ? locks.request(name, work) : work()),
    () => (locks ? locks.request(name, work) : work()),
  )
  running.set(name, turn)
  const forget = () => {
    if (running.get(name) === turn) running.delete(name)
  }
  turn.then(forget, forget)
  return turn
}
