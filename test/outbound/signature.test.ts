import { spawnSync } from 'node:child_process'
import { createHmac, randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { idempotencyKey, signature, verifySignature } from '#server/providers/outbound.ts'

describe('signature and idempotency key', () => {
  const secret = randomBytes(32).toString('hex')
  const hasOpenssl = spawnSync('openssl', ['version']).status === 0
  const secondOpinion = (text: string) =>
    hasOpenssl
      ? spawnSync('openssl', ['dgst', '-sha256', '-hmac', secret], { input: text }).stdout.toString().trim().slice(-64)
      : createHmac('sha256', Buffer.from(secret, 'utf8')).update(Buffer.from(text)).digest('hex')

  test('another implementation finds the same signature', () => {
    const body = '{"name":"Zoë 🚀","n":1}'
    expect(signature(secret, 1_790_000_000, body)).toBe(`t=1790000000,v1=${secondOpinion(`1790000000.${body}`)}`)
  })

  test('a signature holds for its body, secret and time only', () => {
    const header = signature(secret, 1000, 'body')
    expect(verifySignature(header, secret, 'body', 1300)).toBe(true)
    expect(verifySignature(header, secret, 'body', 700)).toBe(true)
    expect(verifySignature(header, secret, 'body', 1301)).toBe(false)
    expect(verifySignature(header, secret, 'body', 699)).toBe(false)
    expect(verifySignature(header, secret, 'body', 1010, 5)).toBe(false)
    expect(verifySignature(header, secret, 'Body', 1000)).toBe(false)
    expect(verifySignature(header, `${secret}0`, 'body', 1000)).toBe(false)
    expect(verifySignature(header.replace('t=1000', 't=1001'), secret, 'body', 1000)).toBe(false)
  })

  test.each(['', 't=1', 'v1=00', 't=1,v1=00', 't=x,v1=00', `t=1,v1=${'g'.repeat(64)}`, `v1=${'0'.repeat(64)},t=1`])(
    'the malformed header %j is refused',
    (header) => {
      expect(verifySignature(header, secret, 'body', 1)).toBe(false)
    },
  )

  test('the idempotency key is UUID version 5', () => {
    const dnsNamespace = '6ba7b810-9dad-11d1-80b4-00c04fd430c8'
    expect(idempotencyKey(dnsNamespace, 'www.example.com')).toBe('2ed6657d-e927-568b-95e1-2665a8aea6a2')
    const [subscription, event] = [randomUUID(), randomUUID()]
    expect(idempotencyKey(subscription, event)).toBe(idempotencyKey(subscription, event))
    expect(idempotencyKey(subscription, event)).not.toBe(idempotencyKey(event, subscription))
    expect(() => idempotencyKey('nobody', event)).toThrow('a subscription id is a UUID')
  })
})
