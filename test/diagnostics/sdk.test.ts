import { afterEach, expect, onTestFinished, test } from 'vitest'
import { diagnosticsOf } from '#test/support/diagnostics.ts'
import { startHarness } from '#test/support/harness.ts'
import { appOf } from '#test/support/sdk.ts'
import { createDiagnostics, type DiagnosticsOptions } from '../../sdk/src/index.ts'

const harness = await startHarness()
const project = await harness.project()
const { issues, only, reportsOf, clear } = diagnosticsOf(project)
afterEach(clear)

const start = (options: DiagnosticsOptions = {}) => {
  const made = appOf(harness, project, {})
  const diagnostics = createDiagnostics(made.app, { delay: 3_600_000, appVersion: '1.4.0', ...options })
  onTestFinished(() => diagnostics.close())
  return { ...made, diagnostics }
}

test('an error is kept without a network, and sent with its stack later', async () => {
  const { net, diagnostics } = start()
  net.isOffline = true
  expect(await diagnostics.report(new TypeError('Broken'), { context: { screen: 'home' } })).toBe(true)
  await expect(diagnostics.flush()).rejects.toThrow()
  expect(await diagnostics.size()).toBe(1)
  net.isOffline = false
  expect(await diagnostics.flush()).toEqual({ accepted: 1, left: 0 })
  const { id, title } = await only()
  expect(title).toBe('TypeError: Broken')
  expect(await reportsOf(id)).toMatchObject([
    { context: { screen: 'home' }, app_version: '1.4.0', stack: expect.stringContaining('sdk.test.ts') },
  ])
})

test('a report whose answer is lost counts once', async () => {
  const { net, diagnostics } = start()
  await diagnostics.report('Broken')
  net.losing.push('POST /v1/client/diagnostics/reports')
  await expect(diagnostics.flush()).rejects.toThrow()
  expect(await diagnostics.size()).toBe(1)
  expect((await only()).count).toBe(1)
  expect(await diagnostics.flush()).toEqual({ accepted: 1, left: 0 })
  expect((await only()).count).toBe(1)
})

test('a loop of errors is throttled, and the oldest go first', async () => {
  const { diagnostics } = start({ perMinute: 5, most: 3 })
  const taken = []
  for (let n = 0; n < 7; n += 1) taken.push(await diagnostics.report(`Failure ${'x'.repeat(n)}`))
  expect(taken).toEqual([true, true, true, true, true, false, false])
  expect(await diagnostics.flush()).toEqual({ accepted: 3, left: 0 })
  expect((await issues()).map(({ title }) => title).sort()).toEqual(['Failure xx', 'Failure xxx', 'Failure xxxx'])
})

test('a report that the server refuses takes none of the others along, nor holds them up', async () => {
  const { diagnostics } = start()
  for (const n of 'abcde')
    await diagnostics.report(`Failure ${n}`, n === 'c' ? { fingerprint: 'x'.repeat(129) } : { fingerprint: n })
  expect(await diagnostics.flush()).toEqual({ accepted: 4, left: 0 })
  expect((await issues()).map(({ title }) => title).sort()).toEqual(['a', 'b', 'd', 'e'].map((n) => `Failure ${n}`))
})

test('twenty reports that are too long for one request come in several', async () => {
  const { diagnostics } = start()
  for (let n = 0; n < 20; n += 1) {
    const error = new Error('Long')
    error.stack = `at f\n${'\u20ac'.repeat(32_000)}`
    await diagnostics.report(error)
  }
  expect(await diagnostics.flush()).toEqual({ accepted: 20, left: 0 })
  expect((await only()).count).toBe(20)
})

test('an error is not lost because of its context, nor because it is no text', async () => {
  const { diagnostics } = start()
  const circle: Record<string, unknown> = {}
  circle['self'] = circle
  await diagnostics.report('Circular', { context: circle, fingerprint: 'f' })
  await diagnostics.report('Large', { context: { text: '\u20ac'.repeat(6000) }, fingerprint: 'f' })
  await diagnostics.report('Fits', { context: { text: 'x'.repeat(16_000) }, fingerprint: 'f' })
  await diagnostics.report(Object.create(null), { fingerprint: 'f' })
  expect(await diagnostics.flush()).toEqual({ accepted: 4, left: 0 })
  const found = await reportsOf((await only()).id)
  expect(new Map(found.map(({ message, context }) => [message, context]))).toEqual(
    new Map<string, unknown>([
      ['Circular', { omitted: 'The context was no JSON.' }],
      ['Large', { omitted: 'The context was too large.' }],
      ['Fits', { text: 'x'.repeat(16_000) }],
      ['Unknown', null],
    ]),
  )
})

test('a clock that is set back takes no reports away', async () => {
  const { diagnostics, app } = start({ perMinute: 1 })
  expect([await diagnostics.report('One'), await diagnostics.report('Two')]).toEqual([true, false])
  const { transport } = app.inside
  const now = transport.now
  onTestFinished(() => void Object.assign(transport, { now }))
  Object.assign(transport, { now: () => now() - 3_600_000 })
  expect(await diagnostics.report('Three')).toBe(true)
})

test('a report of who signed out is not sent as that of another', async () => {
  const { app, diagnostics } = start()
  const { userId } = await app.ensureSignedIn()
  await diagnostics.report('Mine')
  await app.signOut()
  expect(await diagnostics.flush()).toEqual({ accepted: 0, left: 1 })
  await app.ensureSignedIn()
  expect((await app.session())?.userId).not.toBe(userId)
  expect(await diagnostics.flush()).toEqual({ accepted: 0, left: 1 })
})

test('uncaught errors are reported in React Native, when asked for, and go on to the former handler', async () => {
  const seen: unknown[] = []
  let handler: (error: unknown, isFatal?: boolean) => void = (error) => seen.push(error)
  Object.assign(globalThis, {
    ErrorUtils: { getGlobalHandler: () => handler, setGlobalHandler: (next: typeof handler) => (handler = next) },
  })
  onTestFinished(() => void Reflect.deleteProperty(globalThis, 'ErrorUtils'))
  start()
  handler('before')
  const { diagnostics } = start({ uncaught: true })
  handler('crashed', true)
  expect(seen).toEqual(['before', 'crashed'])
  await expect.poll(() => diagnostics.size()).toBe(1)
  await diagnostics.flush()
  expect(await only()).toMatchObject({ level: 'fatal', title: 'crashed' })
})
