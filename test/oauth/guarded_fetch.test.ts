import { afterAll, expect, test } from 'vitest'
import { parseAllowedCidrs } from '#server/providers/addresses.ts'
import { createOutbound } from '#server/providers/outbound.ts'
import { startHttpsReceiver } from '#test/support/https.ts'

const receiver = await startHttpsReceiver({
  handler: ({ path }, response) => {
    if (path === '/redirect') {
      response.statusCode = 302
      response.setHeader('location', '/elsewhere')
    }
    response.setHeader('content-type', 'application/json')
    response.setHeader('set-cookie', 'a=b')
    response.end(path === '/large' ? Buffer.alloc(257 * 1024) : '{"a": 1}')
  },
})
const open = createOutbound({ allowedCidrs: parseAllowedCidrs('127.0.0.1'), caFile: receiver.caFile })
const closed = createOutbound({
  allowedCidrs: [],
  caFile: receiver.caFile,
  resolve: async () => [{ address: '127.0.0.1', family: 4 }],
})
afterAll(async () => {
  await Promise.all([open.close(), closed.close(), receiver.close()])
})
const get = { method: 'GET', headers: {} } as const

test('answers the whole response, and sends what it is given', async () => {
  const body = 'a=b'
  const answer = await open.fetch(`${receiver.url}token?x=1`, { method: 'POST', headers: { Accept: 'text/x' }, body })
  expect([answer.status, answer.headers.get('content-type'), await answer.json()]).toEqual([
    200,
    'application/json',
    { a: 1 },
  ])
  // a cookie of the provider has nothing to do here
  expect(answer.headers.get('set-cookie')).toBeNull()
  expect(receiver.requests.at(-1)).toMatchObject({
    method: 'POST',
    path: '/token?x=1',
    body,
    headers: { accept: 'text/x' },
  })
})

test('follows no redirect', async () => {
  const before = receiver.requests.length
  expect((await open.fetch(`${receiver.url}redirect`, get)).status).toBe(302)
  expect(receiver.requests).toHaveLength(before + 1)
})

test('a response of more than 256 KB is refused', async () => {
  await expect(open.fetch(`${receiver.url}large`, get)).rejects.toThrow('response is too large')
})

test('an address that is not public is refused before anything is sent, whatever its name', async () => {
  const before = receiver.connections().total
  for (const url of [receiver.url, `https://login.example.com:${receiver.port}/`, 'https://login.example.com/'])
    await expect(closed.fetch(url, get)).rejects.toThrow('TARGET_URL_NOT_ALLOWED')
  await expect(closed.fetch('http://example.com/', get)).rejects.toThrow('TARGET_URL_NOT_HTTPS')
  await expect(closed.fetch('https://user@example.com/', get)).rejects.toThrow('TARGET_URL_NOT_ALLOWED')
  expect(receiver.connections().total).toBe(before)
})
