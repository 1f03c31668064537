import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { StartError } from '#server/errors.ts'

/** A network and the length of its prefix, as `parseAllowedCidrs` reads it. */
export type Cidr = readonly [ipaddr.IPv4 | ipaddr.IPv6, number]

const network = (text: string): [ipaddr.IPv6, number] => ipaddr.IPv6.parseCIDR(text)

// The only block from which global unicast addresses are allocated (RFC 4291, IANA). Ranges outside it (loopback,
// unique-local, link-local, site-local, multicast, discard, NAT64 for local use, IPv4-compatible) need no list.
const globalUnicast = network('2000::/3')
// Addresses with these prefixes embed an IPv4 address in their last 32 bits: IPv4-mapped, and NAT64 with the public prefix.
const standsForIPv4 = [network('::ffff:0:0/96'), network('64:ff9b::/96')]
const reservedIPv6 = [
  network('2001::/23'), // protocol assignments: Teredo, ORCHID, benchmarking, AMT, drone identifiers
  network('2001:db8::/32'), // documentation
  network('2002::/16'), // 6to4, withdrawn by RFC 7526: not public, whatever IPv4 address it embeds
  network('2620:4f:8000::/48'), // AS112 sink
  network('3fff::/20'), // documentation
]
// Azure's WireServer hands out credentials at an address in a public range; all other clouds use reserved addresses.
const cloudMetadata = ['168.63.129.16']

const isPublicIPv4 = (address: ipaddr.IPv4) =>
  address.range() === 'unicast' && !cloudMetadata.includes(address.toString())

const lastFourBytes = (address: ipaddr.IPv6) => new ipaddr.IPv4(address.toByteArray().slice(12))

// RFC 5214: the interface identifier is 0000:5efe or 0200:5efe, then the IPv4 address
const isIsatap = (address: ipaddr.IPv6) => {
  const parts = address.parts
  return (parts[4]! & 0xfdff) === 0 && parts[5] === 0x5efe
}

const isPublicIPv6 = (address: ipaddr.IPv6) => {
  if (standsForIPv4.some((range) => address.match(range))) return isPublicIPv4(lastFourBytes(address))
  if (!address.match(globalUnicast) || reservedIPv6.some((range) => address.match(range))) return false
  return !isIsatap(address) || isPublicIPv4(lastFourBytes(address))
}

/**
 * The SSRF filter: whether an IPv4 or IPv6 address is public. False for every reserved range, for cloud metadata, for an address that
 * embeds a private one, for one with a zone id, and for a text that is not an address.
 * Source: the IANA special-purpose registries.
 */
export const isPublicAddress = (address: string): boolean => {
  // a zone id names a network interface of this machine: only addresses that are not global have one
  if (isIP(address) === 0 || address.includes('%')) return false
  const parsed = ipaddr.parse(address)
  return parsed instanceof ipaddr.IPv4 ? isPublicIPv4(parsed) : isPublicIPv6(parsed)
}

/** Whether the address is in one of the networks; an IPv4-mapped address counts as the IPv4 address. */
export const isExempt = (address: string, allowed: readonly Cidr[]): boolean => {
  if (isIP(address) === 0 || address.includes('%')) return false
  const parsed = ipaddr.process(address)
  return allowed.some(([range, bits]) => range.kind() === parsed.kind() && parsed.match(range, bits))
}

const parseCidr = (entry: string): Cidr => {
  const [address = '', prefix, ...rest] = entry.split('/')
  const width = isIP(address) === 4 ? 32 : 128
  const bits = prefix === undefined ? width : Number(prefix)
  const isPrefix = prefix === undefined || (/^\d{1,3}$/.test(prefix) && bits <= width)
  if (isIP(address) === 0 || address.includes('%') || !isPrefix || rest.length > 0) {
    throw new StartError(`"${entry}" is not a network: write it as 10.0.0.0/8, 127.0.0.1 or fd00::/8.`)
  }
  return [ipaddr.parse(address), bits]
}

/**
 * Parses a comma-separated list of networks (`10.0.0.0/8, ::1`); a single address is a network of one address.
 * Throws a StartError that names the invalid entry.
 */
export const parseAllowedCidrs = (text: string | undefined): readonly Cidr[] =>
  (text ?? '')
    .split(',')
    .map((entry) => entry.trim())
    .filter(Boolean)
    .map(parseCidr)
