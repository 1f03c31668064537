import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isExempt, isPublicAddress, parseAllowedCidrs } from '#server/providers/addresses.ts'

describe('which addresses are public', () => {
  const privateNetworks = [
    ['0.0.0.0', 8],
    ['10.0.0.0', 8],
    ['100.64.0.0', 10],
    ['127.0.0.0', 8],
    ['169.254.0.0', 16],
    ['172.16.0.0', 12],
    ['192.0.0.0', 24],
    ['192.0.2.0', 24],
    ['192.31.196.0', 24],
    ['192.52.193.0', 24],
    ['192.88.99.0', 24],
    ['192.168.0.0', 16],
    ['192.175.48.0', 24],
    ['198.18.0.0', 15],
    ['198.51.100.0', 24],
    ['203.0.113.0', 24],
    ['224.0.0.0', 4],
    ['240.0.0.0', 4],
  ] as const

  const number = (address: string) => address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0)
  const dotted = (value: number) => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join('.')
  const isIn = (value: number, [base, bits]: readonly [string, number]) =>
    Math.floor(value / 2 ** (32 - bits)) === Math.floor(number(base) / 2 ** (32 - bits))

  const privateIPv4 = fc
    .tuple(fc.constantFrom(...privateNetworks), fc.nat(2 ** 31))
    .map(([[base, bits], offset]) => dotted(number(base) + (offset % 2 ** (32 - bits))))
  const publicIPv4 = fc
    .integer({ min: 0, max: 2 ** 32 - 1 })
    .filter((value) => !privateNetworks.some((range) => isIn(value, range)) && dotted(value) !== '168.63.129.16')
    .map(dotted)

  const hex = (ipv4: string) => {
    const [a, b, c, d] = ipv4.split('.').map((octet) => Number(octet).toString(16).padStart(2, '0'))
    return `${a}${b}:${c}${d}`
  }
  const inverted = (ipv4: string) => hex(dotted(~number(ipv4) >>> 0))

  const embeddings: readonly (readonly [string, (ipv4: string) => string])[] = [
    ['mapped', (ipv4) => `::ffff:${ipv4}`],
    ['mapped in hex', (ipv4) => `::ffff:${hex(ipv4)}`],
    ['compatible', (ipv4) => `::${ipv4}`],
    ['translated', (ipv4) => `::ffff:0:${ipv4}`],
    ['NAT64', (ipv4) => `64:ff9b::${ipv4}`],
    ['NAT64 for local use', (ipv4) => `64:ff9b:1::${ipv4}`],
    ['6to4', (ipv4) => `2002:${hex(ipv4)}::1`],
    ['Teredo server', (ipv4) => `2001:0:${hex(ipv4)}:0:0:f7f7:f7f7`],
    ['Teredo client', (ipv4) => `2001:0:808:808:0:0:${inverted(ipv4)}`],
    ['ISATAP', (ipv4) => `2606:4700::5efe:${ipv4}`],
    ['ISATAP, global', (ipv4) => `2606:4700::200:5efe:${ipv4}`],
  ]

  test.each(embeddings)('a private IPv4 address embedded as %s is private', (_name, embed) => {
    fc.assert(
      fc.property(privateIPv4, (ipv4) => {
        expect([ipv4, embed(ipv4)].filter(isPublicAddress)).toEqual([])
      }),
    )
  })

  test('other IPv4 addresses are public, also mapped and behind NAT64', () => {
    fc.assert(
      fc.property(publicIPv4, (ipv4) => {
        expect([ipv4, `::ffff:${ipv4}`, `64:ff9b::${ipv4}`].filter((address) => !isPublicAddress(address))).toEqual([])
      }),
    )
  })

  test('addresses of the IPv6 blocks that registries give out are public', () => {
    const blocks = fc.constantFrom(0x2400, 0x2600, 0x2604, 0x2606, 0x2800, 0x2a00, 0x2a02, 0x2c0f)
    const rest = fc.array(fc.integer({ min: 1, max: 0x5000 }), { minLength: 7, maxLength: 7 })
    fc.assert(
      fc.property(blocks, rest, (block, parts) => {
        const address = [block, ...parts].map((part) => part.toString(16)).join(':')
        expect(isPublicAddress(address), address).toBe(true)
      }),
    )
  })

  test.each([
    '0.0.0.0',
    '255.255.255.255',
    '169.254.169.254',
    '100.100.100.200',
    '192.0.0.192',
    '168.63.129.16',
    '::',
    '::1',
    'fd00:ec2::254',
    'fd20:ce::254',
    'fc00::1',
    'fec0::1',
    'fe80::1',
    'fe80::1%eth0',
    '2606:4700::1%eth0',
    'ff02::1',
    '100::1',
    '2001:2::1',
    '2001:10::1',
    '2001:20::1',
    '2001:db8::1',
    '2620:4f:8000::1',
    '3fff::1',
    '3fff:fff::1',
    '4000::1',
    '5f00::1',
    'e000::1',
    '127.1',
    '0x7f000001',
    '010.8.8.8',
    'example.com',
    '',
  ])('%s is not', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })

  test.each(['1.1.1.1', '8.8.8.8', '2606:4700:4700::1111', '2001:4860:4860::8888'])('%s is', (address) => {
    expect(isPublicAddress(address)).toBe(true)
  })
})

describe('networks that are let in', () => {
  test('a list has networks and single addresses of both families', () => {
    const allowed = parseAllowedCidrs(' 10.0.0.0/8, 127.0.0.1 ,fd00::/8,::1, ')
    const inside = ['10.255.0.1', '127.0.0.1', '::ffff:10.0.0.1', 'fd12::1', '::1']
    const outside = ['11.0.0.1', '127.0.0.2', 'fc00::1', '::2', '64:ff9b::10.0.0.1', 'fd12::1%eth0', 'localhost']
    expect([...inside, ...outside].filter((address) => isExempt(address, allowed))).toEqual(inside)
  })

  test('nothing is let in by default', () => {
    expect(parseAllowedCidrs(undefined)).toEqual([])
    expect(parseAllowedCidrs(' , ')).toEqual([])
  })

  test.each(['10.0.0.0/33', '10.0.0/8', '::/129', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0.0/-1', 'fe80::%lo/64', 'lan'])(
    '%s is named as no network',
    (entry) => {
      expect(() => parseAllowedCidrs(`127.0.0.1,${entry}`)).toThrow(`"${entry}" is not a network`)
    },
  )
})
