/** Requests of somebody who means no good, or whose program is broken: many, at once, of all forms. */
import fc from 'fast-check'
import { expect } from 'vitest'
import { freshIp } from '#test/support/client.ts'

/** So many requests each test sends: few of every day, `FUZZ_RUNS=100000` of a long one. */
export const rounds = Number(process.env['FUZZ_RUNS'] ?? 150)
/** A request of a slow and busy machine takes this much at most, on the average. */
export const longEnough = 120_000 + rounds * 60
/** No request hangs. */
const lateMs = 60_000
const lanes = Math.min(8, rounds)
const seed = Number(fc.readConfigureGlobal().seed)

/** Does it with as many values as `rounds` says, some at once. */
export const often = <T>(values: fc.Arbitrary<T>, work: (value: T) => Promise<void>): Promise<unknown> =>
  Promise.all(
    // each draws others
    Array.from({ length: lanes }, (_, lane) =>
      fc.assert(fc.asyncProperty(values, work), { numRuns: Math.ceil(rounds / lanes), seed: seed + lane }),
    ),
  )

/** Words that mean something there, and some that mean nothing anywhere. */
export const wordsOf = (...known: string[]) =>
  fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...known) },
    fc.constantFrom('__proto__', 'constructor', '..', '.', '*', '\\', "'", '"', '\0', '\ud800', 'a'.repeat(3000)),
    fc.string({ maxLength: 6 }),
    fc.string({ maxLength: 6, unit: 'binary' }),
  )

const encoded = (text: string) => encodeURIComponent(text.toWellFormed())
/** What a URL may have in it that no encoder writes. */
const broken = fc.constantFrom('%', '%00', '%ff', '%c0%ae', '%2e%2e', '%2F', '%5c', '+', ';', '&', '=', '?', '[]', '|')

/** A word as it stands in a URL, encoded or broken. */
export const inUrl = (word: fc.Arbitrary<string>) => fc.oneof({ weight: 9, arbitrary: word.map(encoded) }, broken)

export const queryOf = (names: readonly string[], value: fc.Arbitrary<string>) =>
  fc
    .array(fc.tuple(fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...names) }, inUrl(fc.string())), inUrl(value)), {
      maxLength: 6,
    })
    .map((pairs) => pairs.map(([name, text]) => `${name}=${text}`).join('&'))

/** A body: an object of some fields, most as they should be; other JSON, or no JSON. */
export const bodyOf = (fields: Readonly<Record<string, fc.Arbitrary<unknown>>>, word: fc.Arbitrary<string>) => {
  const wrong = fc.oneof(word, fc.jsonValue({ maxDepth: 2 }), numbers, fc.string())
  const some = Object.fromEntries(
    Object.entries(fields).map(([name, right]) => [name, fc.oneof({ weight: 6, arbitrary: right }, wrong)]),
  )
  const more = fc.dictionary(fc.oneof(fc.constantFrom(...Object.keys(fields), '__proto__', 'toString'), word), wrong, {
    maxKeys: 4,
  })
  return fc.oneof(
    { weight: 6, arbitrary: fc.record(some).map((value) => JSON.stringify(value)) },
    { weight: 3, arbitrary: fc.record(some, { requiredKeys: [] }).map((value) => JSON.stringify(value)) },
    more.map((value) => JSON.stringify(value)),
    fc.oneof(fc.json(), fc.string(), fc.constantFrom(...noBodies)),
  )
}
const noBodies = ['null', '[]', '0', '""', '{', '{"a":1e400}', '{"a":"\\u0000"}', '{"a":"\\ud800"}', '['.repeat(500)]
const numbers: fc.Arbitrary<number> = fc.constantFrom(-1, 0, 1, 1e21, 2 ** 53, 2 ** 31, Number.MAX_VALUE, -0.5)

export type Sent = {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | undefined
}
export type Told = { readonly status: number; readonly text: string; readonly location: string | null }

/** Sends it from an address of its own, and expects an answer in time that is no failure of the server. */
export const knock = async (url: string, { method, path, headers = {}, body }: Sent): Promise<Told> => {
  const isRead = method === 'GET' || method === 'HEAD'
  const response = await fetch(`${url}${path}`, {
    method,
    redirect: 'manual',
    signal: AbortSignal.timeout(lateMs),
    headers: { 'x-forwarded-for': freshIp(), ...headers },
    ...(isRead || body === undefined ? {} : { body }),
  })
  const text = await response.text()
  expect(response.status, `${method} ${path} ${body ?? ''}: ${text}`).toBeLessThan(500)
  return { status: response.status, text, location: response.headers.get('location') }
}
