import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { type AddressInfo, isIP } from 'node:net'
import { join } from 'node:path'
import ipaddr from 'ipaddr.js'
import { runFolder } from '#test/support/run.ts'

export type Authority = { readonly name: string; readonly key: KeyObject; readonly certificate: string }
export type Leaf = { readonly key: string; readonly certificate: string }
export type Validity = { readonly from: Date; readonly until: Date }

// The few pieces of DER that a certificate needs (X.690, RFC 5280): tag, length, content.
const der = (tag: number, ...parts: readonly (Buffer | string)[]): Buffer => {
  const content = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'hex') : part)))
  const length = content.length
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}
const sequence = (...parts: readonly (Buffer | string)[]) => der(0x30, ...parts)
const oid = (hex: string) => der(0x06, hex)
const bits = (...parts: readonly (Buffer | string)[]) => der(0x03, '00', ...parts)
const ecdsaWithSha256 = sequence(oid('2a8648ce3d040302'))
const isTrue = der(0x01, 'ff')

const distinguishedName = (name: string) => sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(name)))))

const time = (date: Date) => der(0x17, Buffer.from(`${date.toISOString().replace(/\D/g, '').slice(2, 14)}Z`))

const extension = (id: string, value: Buffer, isCritical = false) =>
  sequence(oid(id), ...(isCritical ? [isTrue] : []), der(0x04, value))

const alternativeName = (name: string) =>
  isIP(name) ? der(0x87, Buffer.from(ipaddr.parse(name).toByteArray())) : der(0x82, Buffer.from(name))

const pem = (certificate: Buffer) =>
  `-----BEGIN CERTIFICATE-----\n${certificate.toString('base64').replace(/.{1,64}/g, '$&\n')}-----END CERTIFICATE-----\n`

type Request = {
  readonly subject: string
  readonly publicKey: KeyObject
  readonly issuer: { readonly name: string; readonly key: KeyObject }
  readonly validity: Validity
  readonly extensions: readonly Buffer[]
}

const spki = (publicKey: KeyObject) => publicKey.export({ type: 'spki', format: 'der' })
const keyIdentifier = (publicKey: KeyObject) => createHash('sha1').update(spki(publicKey)).digest()

// strict verifiers, such as Python's, want both key identifiers
const identifiers = (subject: KeyObject, issuer: KeyObject) => [
  extension('551d0e', der(0x04, keyIdentifier(subject))),
  extension('551d23', sequence(der(0x80, keyIdentifier(createPublicKey(issuer))))),
]

const issue = ({ subject, publicKey, issuer, validity, extensions }: Request) => {
  const body = sequence(
    der(0xa0, der(0x02, '02')),
    der(0x02, '01', randomBytes(15)),
    ecdsaWithSha256,
    distinguishedName(issuer.name),
    sequence(time(validity.from), time(validity.until)),
    distinguishedName(subject),
    spki(publicKey),
    der(0xa3, sequence(...identifiers(publicKey, issuer.key), ...extensions)),
  )
  return pem(sequence(body, ecdsaWithSha256, bits(sign('sha256', body, issuer.key))))
}

const newKeys = () => generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
const day = 24 * 3600 * 1000
const thisMonth = (): Validity => ({ from: new Date(Date.now() - day), until: new Date(Date.now() + 30 * day) })

/** A certificate authority of its own, valid for a month, in memory. */
export const createAuthority = (name = 'Trellis test authority'): Authority => {
  const { publicKey, privateKey: key } = newKeys()
  const extensions = [
    extension('551d13', sequence(isTrue), true), // basic constraints: an authority
    extension('551d0f', der(0x03, '0106'), true), // key usage: signs certificates and revocation lists
  ]
  const certificate = issue({ subject: name, publicKey, issuer: { name, key }, validity: thisMonth(), extensions })
  return { name, key, certificate }
}

/** A server certificate for host names and IP addresses, signed by the authority; key and certificate in PEM. */
export const createLeaf = (authority: Authority, names: readonly string[], validity = thisMonth()): Leaf => {
  const { publicKey, privateKey } = newKeys()
  const extensions = [
    extension('551d11', sequence(...names.map(alternativeName))), // subject alternative names
    extension('551d25', sequence(oid('2b06010505070301'))), // extended key usage: TLS server
  ]
  const certificate = issue({ subject: names[0] ?? 'nobody', publicKey, issuer: authority, validity, extensions })
  return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), certificate }
}

export type ReceivedRequest = {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly receivedAt: Date
}

export type ReceiverOptions = {
  /** Answers the request, which is read and recorded before; without one, 200 `ok`. */
  readonly handler?: (request: ReceivedRequest, response: ServerResponse) => unknown
  /** Names and addresses in the certificate; the first one stands in `url`. */
  readonly hostnames?: readonly string[]
  readonly authority?: Authority
  readonly validity?: Validity
  readonly port?: number
}

export type HttpsReceiver = {
  readonly url: string
  readonly port: number
  readonly caPem: string
  readonly caFile: string
  readonly requests: ReceivedRequest[]
  /** Connections that are open now, and how many there were in all. */
  connections(): { readonly open: number; readonly total: number }
  close(): Promise<void>
}

const record = async (request: IncomingMessage): Promise<ReceivedRequest> => {
  const receivedAt = new Date()
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return {
    method: request.method ?? '',
    path: request.url ?? '',
    headers: request.headers,
    body: Buffer.concat(chunks).toString('utf8'),
    receivedAt,
  }
}

const answerOk = (_request: ReceivedRequest, response: ServerResponse) => response.end('ok')

const authorityFile = async (authority: Authority) => {
  const folder = await mkdtemp(join(await runFolder(), 'ca-'))
  const caFile = join(folder, 'ca.pem')
  await writeFile(caFile, authority.certificate)
  return { caFile, remove: () => rm(folder, { recursive: true }) }
}

/** A real HTTPS server on 127.0.0.1 that keeps what it was sent. Trust it by `caFile`; `close` ends open connections. */
export const startHttpsReceiver = async (options: ReceiverOptions = {}): Promise<HttpsReceiver> => {
  const { handler = answerOk, hostnames = ['127.0.0.1', 'localhost'], authority = createAuthority() } = options
  const leaf = createLeaf(authority, hostnames, options.validity)
  const { caFile, remove } = await authorityFile(authority)
  const requests: ReceivedRequest[] = []
  const server = createServer({ key: leaf.key, cert: leaf.certificate }, (request, response) => {
    const answer = async () => {
      const received = await record(request)
      requests.push(received)
      await handler(received, response)
    }
    answer().catch(() => response.destroy())
  })
  const counts = { open: 0, total: 0 }
  server.on('connection', (socket) => {
    counts.open += 1
    counts.total += 1
    socket.on('close', () => {
      counts.open -= 1
    })
  })
  server.listen(options.port ?? 0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `https://${hostnames[0]}:${port}/`,
    port,
    caPem: authority.certificate,
    caFile,
    requests,
    connections: () => ({ ...counts }),
    async close() {
      const isClosed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await Promise.all([isClosed, remove()])
    },
  }
}
