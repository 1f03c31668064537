import { createHash, createPublicKey, createVerify } from 'node:crypto'

/**
 * Checks the DKIM signature of a raw message as a receiver does (RFC 6376, relaxed canonicalization of headers and body), written for the
 * tests alone so that signer and verifier do not share a mistake.
 */
export const verifyDkim = (raw: string, privatePem: string): boolean => {
  const end = raw.indexOf('\r\n\r\n')
  const fields = raw.slice(0, end).split(/\r\n(?![ \t])/)
  const signature = fields.find((field) => /^dkim-signature:/i.test(field)) ?? ''
  const tags = Object.fromEntries(
    signature
      .replace(/^[^:]*:/, '')
      .split(';')
      .map((part) => part.trim())
      .filter(Boolean)
      .map((part) => [part.slice(0, part.indexOf('=')).trim(), part.slice(part.indexOf('=') + 1).trim()]),
  )
  const body = `${raw
    .slice(end + 4)
    .split('\r\n')
    .map((line) => line.replace(/[ \t]+/g, ' ').replace(/ $/, ''))
    .join('\r\n')
    .replace(/(\r\n)*$/, '')}\r\n`
  if (createHash('sha256').update(body).digest('base64') !== (tags['bh'] ?? '').replace(/\s/g, '')) return false
  const relaxed = (field: string) => {
    const colon = field.indexOf(':')
    const value = field
      .slice(colon + 1)
      .replace(/\r\n/g, '')
      .replace(/[ \t]+/g, ' ')
      .trim()
    return `${field.slice(0, colon).trim().toLowerCase()}:${value}`
  }
  const names = (tags['h'] ?? '').split(':').map((name) => name.trim().toLowerCase())
  const signed = names.map((name) => fields.findLast((field) => field.toLowerCase().startsWith(`${name}:`)))
  const headers = signed.filter((field) => field !== undefined).map((field) => `${relaxed(field)}\r\n`)
  const unsigned = relaxed(signature.replace(/(;\s*b=)[^;]*/, '$1'))
  return createVerify('RSA-SHA256')
    .update(headers.join('') + unsigned)
    .verify(createPublicKey(privatePem), (tags['b'] ?? '').replace(/\s/g, ''), 'base64')
}
