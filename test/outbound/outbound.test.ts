import { describe, expect, test } from 'vitest'
import { parseAllowedCidrs } from '#server/providers/addresses.ts'
import { resolveByDns } from '#server/providers/outbound.ts'
import { addresses, request, startOutbound } from '#test/support/outbound.ts'

/** The SSRF filter of outbound requests: which URLs are refused, when a URL is registered and when it is called. */
const { receiver, outbound, nameServer } = startOutbound()

describe('the SSRF filter at registration', () => {
  const names: Record<string, string[]> = {
    'public.test': ['93.184.215.14', '2606:2800:21f:cb07:6820:80da:af6b:8b2c'],
    'mixed.test': ['93.184.215.14', '10.0.0.1'],
    'mixed6.test': ['2606:4700::1', 'fd00::1'],
    'nat64.test': ['64:ff9b::a00:1'],
    'loopback.test': ['127.0.0.1'],
    'xn--mnchen-3ya.test': ['93.184.215.14'],
    localhost: ['127.0.0.1', '::1'],
    'a.localhost': ['127.0.0.1'],
    'metadata.google.internal': ['169.254.169.254'],
    'nonsense.test': ['not an address'],
    'empty.test': [],
  }
  const resolve = async (hostname: string) => {
    const found = names[hostname]
    if (!found) throw Object.assign(new Error('queryA ENOTFOUND'), { code: 'ENOTFOUND' })
    return addresses(...found)
  }
  const code = async (url: string, allowed?: string) => {
    const options = { allowedCidrs: parseAllowedCidrs(allowed), resolve }
    return (await outbound(options).checkUrl(url))?.code ?? null
  }

  test.each([
    'https://public.test/hook?a=1#part',
    'https://public.test:443/',
    'https://PUBLIC.test/',
    'https://public.test./',
    'https://münchen.test/',
    'https://93.184.215.14/',
    'https://[2606:4700:4700::1111]/',
    'https://public%2Etest/',
  ])('%s may', async (url) => {
    expect(await code(url)).toBeNull()
  })

  test.each(['http://public.test/', 'HTTP://127.0.0.1/', 'http://localhost:8080/'])('%s is not https', async (url) => {
    expect(await code(url)).toBe('TARGET_URL_NOT_HTTPS')
  })

  test.each([
    '',
    'public.test',
    '//public.test/',
    'https://',
    'ftp://public.test/',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'https://user@public.test/',
    'https://user:word@public.test/',
    'https://public.test:8443/',
    'https://public.test:80/',
    'https://public..test/',
    'https://public.test../',
    `https://public.test/${'a'.repeat(2048)}`,
    'https://unknown.test/',
    'https://empty.test/',
    'https://nonsense.test/',
    'https://mixed.test/',
    'https://mixed6.test/',
    'https://nat64.test/',
    'https://loopback.test/',
    'https://localhost/',
    'https://LOCALHOST./',
    'https://a.localhost/',
    'https://metadata.google.internal/computeMetadata/v1/',
    'https://169.254.169.254/latest/meta-data/',
    'https://127.0.0.1/',
    'https://127.0.0.1./',
    'https://127.1/',
    'https://2130706433/',
    'https://0177.0.0.1/',
    'https://0x7f000001/',
    'https://0x7f.0.0.1/',
    'https://0/',
    'https://１２７.０.０.１/',
    'https://127。0。0。1/',
    'https://①②⑦.0.0.1/',
    'https://ｌｏｃａｌｈｏｓｔ/',
    'https://%31%32%37.0.0.1/',
    'https://127.0.0.1%2f@public.test/',
    'https://public.test@127.0.0.1/',
    'https:\\\\127.0.0.1\\',
    'https://127.0.0.1\t/',
    'https://256.0.0.1/',
    'https://[::1]/',
    'https://[::]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::ffff:7f00:1]/',
    'https://[0:0:0:0:0:ffff:0a00:0001]/',
    'https://[64:ff9b::7f00:1]/',
    'https://[2002:7f00:1::]/',
    'https://[fe80::1%25eth0]/',
    'https://[fd00:ec2::254]/',
  ])('%s may not', async (url) => {
    expect(await code(url)).toBe('TARGET_URL_NOT_ALLOWED')
  })

  test('an allowed network is exempt with every port, its neighbours are not', async () => {
    expect(await code('https://127.0.0.1:8443/', '127.0.0.0/8')).toBeNull()
    expect(await code('https://loopback.test:8443/', '127.0.0.0/8')).toBeNull()
    expect(await code('https://localhost/', '127.0.0.0/8')).toBe('TARGET_URL_NOT_ALLOWED')
    expect(await code('https://localhost/', '127.0.0.0/8,::1')).toBeNull()
    expect(await code('https://public.test:8443/', '127.0.0.0/8')).toBe('TARGET_URL_NOT_ALLOWED')
    expect(await code('https://mixed.test:8443/', '10.0.0.0/8')).toBe('TARGET_URL_NOT_ALLOWED')
    expect(await code('http://127.0.0.1/', '127.0.0.0/8')).toBe('TARGET_URL_NOT_HTTPS')
  })

  test('a name server that does not answer in time is a refusal', async () => {
    const slow = outbound({ resolve: () => new Promise(() => {}), timeoutMs: 50 })
    expect(await slow.checkUrl('https://slow.test/')).toMatchObject({ code: 'TARGET_URL_NOT_ALLOWED' })
  })
})

describe('a host name whose addresses change (DNS rebinding)', () => {
  test('is resolved once, and the connection goes to a resolved address', async () => {
    const inside = await receiver({ hostnames: ['hook.test'] })
    // 203.0.113.0/24 is exempted and stands for the public address of the first DNS response; nothing listens there
    const names = await nameServer(['203.0.113.5'], ['127.0.0.1'])
    const out = outbound({
      allowedCidrs: parseAllowedCidrs('203.0.113.0/24'),
      caFile: inside.caFile,
      resolve: resolveByDns([`127.0.0.1:${names.port}`]),
      timeoutMs: 400,
    })
    const first = await out.post(request(inside.url))
    expect(first).toMatchObject({ statusCode: null, refused: false })
    expect(['timeout', 'host unreachable', 'connection refused', 'connection closed']).toContain(first.error)
    expect(names.asked()).toBe(1)
    expect(await out.post(request(inside.url))).toMatchObject({ error: 'TARGET_URL_NOT_ALLOWED', refused: true })
    expect(names.asked()).toBe(2)
    expect(inside.connections().total).toBe(0)
  })

  test('is refused when one of its addresses is private, in either order', async () => {
    const inside = await receiver({ hostnames: ['hook.test'] })
    for (const answer of [addresses('93.184.215.14', '127.0.0.1'), addresses('127.0.0.1', '93.184.215.14')]) {
      const out = outbound({ allowedCidrs: [], caFile: inside.caFile, resolve: async () => answer })
      const refused = { statusCode: null, error: 'TARGET_URL_NOT_ALLOWED', refused: true }
      expect(await out.post(request(inside.url))).toMatchObject(refused)
      expect(await out.post(request('https://hook.test/'))).toMatchObject(refused)
    }
    expect(inside.connections().total).toBe(0)
  })

  test('is reached by the next of its allowed addresses when the first does not answer', async () => {
    const inside = await receiver({ hostnames: ['hook.test'] })
    const out = outbound({ caFile: inside.caFile, resolve: async () => addresses('127.9.9.9', '127.0.0.1') })
    expect(await out.post(request(inside.url))).toMatchObject({ statusCode: 200, error: null })
    expect(inside.requests[0]?.headers.host).toBe(`hook.test:${inside.port}`)
  })

  test('literal addresses are checked without a resolver', async () => {
    const inside = await receiver()
    const resolve = async () => addresses('93.184.215.14')
    const out = outbound({ allowedCidrs: [], caFile: inside.caFile, resolve })
    for (const host of ['127.0.0.1', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]']) {
      const refused = { error: 'TARGET_URL_NOT_ALLOWED', refused: true }
      expect(await out.post(request(`https://${host}:${inside.port}/`))).toMatchObject(refused)
    }
    expect(await out.post(request(`http://127.0.0.1:${inside.port}/`))).toMatchObject({
      error: 'TARGET_URL_NOT_HTTPS',
      refused: true,
    })
    expect(inside.connections().total).toBe(0)
  })

  test('may fail to resolve for a while: that is no refusal', async () => {
    const out = outbound({ resolve: () => Promise.reject(new Error('ESERVFAIL')) })
    expect(await out.post(request('https://hook.test/'))).toMatchObject({
      error: 'host name does not resolve',
      refused: false,
    })
  })
})
