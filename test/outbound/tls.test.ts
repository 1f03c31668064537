import { writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { addresses, request, startOutbound } from '#test/support/outbound.ts'

/** The verification of receivers' TLS certificates, and the certificate authorities that are trusted. */
const { receiver, outbound } = startOutbound()

describe('certificates', () => {
  const resolve = async () => addresses('127.0.0.1')
  const untrusted = 'certificate is not signed by a trusted authority'

  test('one of an unknown authority is refused, also with NODE_TLS_REJECT_UNAUTHORIZED=0', async () => {
    const hook = await receiver()
    expect(await outbound().post(request(hook.url))).toMatchObject({ statusCode: null, error: untrusted })
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    try {
      expect(await outbound().post(request(hook.url))).toMatchObject({ statusCode: null, error: untrusted })
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
    }
    expect(hook.requests).toEqual([])
  })

  test.each([
    ['another name', ['other.test'], 'hook.test'],
    ['the address instead of the name', ['127.0.0.1'], 'hook.test'],
    ['the name instead of the address', ['hook.test'], '127.0.0.1'],
  ])('one for %s is refused', async (_name, hostnames, host) => {
    const hook = await receiver({ hostnames })
    const outcome = await outbound({ caFile: hook.caFile, resolve }).post(request(`https://${host}:${hook.port}/`))
    expect(outcome).toMatchObject({ statusCode: null, error: 'certificate is not for this host name' })
    expect(hook.requests).toEqual([])
  })

  test('one that has expired is refused', async () => {
    const validity = { from: new Date('2020-01-01'), until: new Date('2020-02-01') }
    const hook = await receiver({ validity })
    const outcome = await outbound({ caFile: hook.caFile }).post(request(hook.url))
    expect(outcome).toMatchObject({ statusCode: null, error: 'certificate has expired' })
  })

  test('one for a name is valid for the name with a final dot', async () => {
    const hook = await receiver({ hostnames: ['hook.test'] })
    const out = outbound({ caFile: hook.caFile, resolve })
    expect(await out.post(request(`https://hook.test.:${hook.port}/`))).toMatchObject({ statusCode: 200 })
  })

  test('a file without a certificate is a StartError that names it', async () => {
    const { caFile } = await receiver()
    await writeFile(caFile, 'no certificate')
    expect(() => outbound({ caFile })).toThrow(`${caFile} cannot be used as a certificate authority`)
    expect(() => outbound({ caFile: `${caFile}.missing` })).toThrow('cannot be used as a certificate authority')
  })
})
