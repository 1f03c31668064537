import { once } from 'node:events'
import { request } from 'node:http'
import { setTimeout as turn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { begin, eventsIn, finished, hello, startAi } from '#test/support/ai.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** Providers that do not answer in time. */
const { provider, harness, project, admin, prompt } = await startAi({ AI_TIMEOUT_MS: '300', AI_STREAM_MS: '1500' })
const user = await project.user()
await admin.post('/collections', {
  name: 'notes',
  read_policy: 'public',
  columns: [{ name: 'near', type: 'vector', dimensions: 3 }],
})
const silent = () => provider.answer(() => undefined)

test('a call', async () => {
  // of several providers: failures in a row would open the circuit of one
  for (const [name, client, path] of [
    ['openai', admin, '/ai/prompts'],
    ['mistral', user, '/client/ai/prompts'],
  ] as const) {
    const prompted = await prompt({ provider: name })
    silent()
    expectRefusal(await client.post(`${path}/${prompted}/invoke`, hello), 502, 'PROVIDER_TIMEOUT')
    const row = await finished(project, prompted)
    // what it has cost nobody knows: a time of writing is estimated
    expect(row).toMatchObject({ status: 'failed', error_code: 'PROVIDER_TIMEOUT', is_estimated: true })
    expect(row.output_tokens).toBeGreaterThanOrEqual(30)
    await provider.asked[0]!.closed
  }
})

test('a stream that does not begin, and one that pauses', async () => {
  const name = await prompt({ provider: 'anthropic', model: 'claude-haiku-4-5' })
  silent()
  expectRefusal(
    await user.post(`/client/ai/prompts/${name}/invoke`, { ...hello, stream: true }),
    502,
    'PROVIDER_TIMEOUT',
  )
  provider.answer((_asked, response) => {
    begin(response)
    response.write('data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"one"}}\n\n')
  })
  const events = eventsIn((await user.post(`/client/ai/prompts/${name}/invoke`, { ...hello, stream: true })).text)
  expect(events).toEqual([
    { event: 'delta', data: { text: 'one' } },
    { event: 'error', data: { code: 'PROVIDER_TIMEOUT', message: expect.any(String) } },
  ])
})

test('native bodies and embeddings', async () => {
  silent()
  expectRefusal(await admin.post('/ai/messages', { provider: 'google', body: { model: 'm' } }), 502, 'PROVIDER_TIMEOUT')
  expectRefusal(
    await admin.post('/ai/embeddings', { provider: 'openai', model: 'm', input: 'a' }),
    502,
    'PROVIDER_TIMEOUT',
  )
  const search = { column: 'near', text: 'a' }
  expectRefusal(await admin.post('/collections/notes/find-nearest', search), 502, 'PROVIDER_TIMEOUT')
  expectRefusal(await user.post('/client/collections/notes/find-nearest', search), 502, 'PROVIDER_TIMEOUT')
})

describe('a stream that never ends', () => {
  const endless = (text = 'on and on ') =>
    provider.answer(async (asked, response) => {
      begin(response)
      const piece = `data: {"choices":[{"index":0,"delta":{"content":"${text}"}}]}\n\n`
      let isOver = false
      void asked.closed.then(() => {
        isOver = true
      })
      while (!isOver) {
        response.write(piece)
        await turn(20)
      }
    })

  test('ends before its reservation does, and is paid for', async () => {
    const name = await prompt({ provider: 'openai' })
    endless()
    const events = eventsIn((await user.post(`/client/ai/prompts/${name}/invoke`, { ...hello, stream: true })).text)
    expect(events.at(-1)).toEqual({ event: 'error', data: { code: 'PROVIDER_TIMEOUT', message: expect.any(String) } })
    expect(events.length).toBeGreaterThan(5)
    await provider.asked[0]!.closed
    const row = await finished(project, name)
    expect(row).toMatchObject({ status: 'failed', error_code: 'PROVIDER_TIMEOUT' })
    expect(row.output_tokens).toBeGreaterThan(5)
  })

  test('and that its client does not read is recorded all the same', async () => {
    endless('x'.repeat(1_000_000))
    let row: Awaited<ReturnType<typeof finished>> | undefined
    // on a busy machine the provider of the test may pause for longer than the time of a call, which is a failure of the provider
    for (let tries = 0; tries < 4 && row?.status !== 'cancelled'; tries += 1) {
      const name = await prompt({ provider: 'mistral' })
      const unread = request(`${harness.url}/v1/client/ai/prompts/${name}/invoke`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...user.headers },
      })
      unread.on('error', () => undefined).end(JSON.stringify({ ...hello, stream: true }))
      await once(unread, 'response')
      row = await finished(project, name)
      unread.destroy()
    }
    expect(row).toMatchObject({ status: 'cancelled', is_estimated: true })
  })
})
