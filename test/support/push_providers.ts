import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createHttp2, type IncomingHttpHeaders, type ServerHttp2Session } from 'node:http2'
import { type AddressInfo, connect, createServer as createWay, type Socket } from 'node:net'
import { jwtVerify } from 'jose'
import { startHttpsReceiver } from '#test/support/https.ts'

export type Reply = {
  readonly status: number
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
}
export type Push = { readonly path: string; readonly headers: IncomingHttpHeaders; readonly body: any }
/** Decides on one message; undefined accepts it. */
export type Decide = (push: Push) => Reply | undefined | Promise<Reply | undefined>

/** What lies between a client and a server, and may forget a connection. */
const startWay = async (to: number) => {
  const sockets = new Set<Socket>()
  let pairs: { isSilent: boolean }[] = []
  const way = createWay((from) => {
    const behind = connect(to, '127.0.0.1')
    const pair = { isSilent: false }
    pairs.push(pair)
    for (const [one, other] of [
      [from, behind],
      [behind, from],
    ] as const) {
      sockets.add(one)
      one.on('data', (bytes) => pair.isSilent || other.write(bytes))
      one.on('error', () => undefined)
      one.on('close', () => {
        sockets.delete(one)
        if (!pair.isSilent) other.destroy()
      })
    }
  })
  way.listen(0, '127.0.0.1')
  await once(way, 'listening')
  return {
    port: (way.address() as AddressInfo).port,
    silence() {
      for (const pair of pairs) pair.isSilent = true
      pairs = []
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      way.close()
      await once(way, 'close')
    },
  }
}

const pem = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }).toString()

/** APNs as Apple documents it: HTTP/2, POST /3/device/<token>, a token of ES256 that is at most an hour old, reasons in JSON. */
export const startApns = async (now: () => Date) => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const config = {
    key_id: 'KEY1234567',
    team_id: 'TEAM123456',
    bundle_id: 'com.example.app',
    private_key: pem(privateKey),
  }
  const pushes: Push[] = []
  const tokens = new Set<string>()
  const sessions = new Set<ServerHttp2Session>()
  let decide: Decide = () => undefined
  let opened = 0

  const refusal = async (headers: IncomingHttpHeaders): Promise<Reply | undefined> => {
    const token = /^bearer (.+)$/.exec(String(headers.authorization))?.[1]
    if (!token) return { status: 403, body: { reason: 'MissingProviderToken' } }
    tokens.add(token)
    try {
      const { payload, protectedHeader } = await jwtVerify(token, publicKey, {
        issuer: config.team_id,
        currentDate: now(),
      })
      if (protectedHeader.kid !== config.key_id) throw new Error('kid')
      if (now().getTime() / 1000 - Number(payload.iat) > 3600)
        return { status: 403, body: { reason: 'ExpiredProviderToken' } }
    } catch {
      return { status: 403, body: { reason: 'InvalidProviderToken' } }
    }
    if (headers['apns-topic'] !== config.bundle_id) return { status: 400, body: { reason: 'DeviceTokenNotForTopic' } }
    if (headers[':path'] === '/3/device/00') return { status: 400, body: { reason: 'BadDeviceToken' } }
    return undefined
  }

  const server = createHttp2()
  server.on('session', (session) => {
    opened += 1
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
  })
  server.on('stream', (stream, headers) => {
    let text = ''
    stream.on('error', () => undefined)
    stream.on('data', (chunk) => {
      text += chunk
    })
    stream.on('end', async () => {
      // a sender that was killed in the middle of its message has sent none
      if (stream.aborted) return
      const push = { path: String(headers[':path']), headers, body: JSON.parse(text) }
      const refused = await refusal(headers)
      if (!refused) pushes.push(push)
      const reply = refused ?? (await decide(push)) ?? { status: 200 }
      if (stream.destroyed) return
      stream.respond({ ':status': reply.status, 'apns-id': String(headers['apns-id'] ?? ''), ...reply.headers })
      stream.end(reply.body ? JSON.stringify(reply.body) : '')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const way = await startWay((server.address() as AddressInfo).port)
  return {
    url: `http://127.0.0.1:${way.port}`,
    config,
    pushes,
    tokens,
    opened: () => opened,
    answer: (next: Decide) => {
      decide = next
    },
    goAway: () => {
      for (const session of sessions) session.goaway()
    },
    destroy: () => {
      for (const session of sessions) session.destroy()
    },
    /** What is open now is forgotten, as by a NAT: nothing comes through any more, and nothing is closed. */
    silence: () => way.silence(),
    async close() {
      await way.close()
      for (const session of sessions) session.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** FCM's HTTP v1 API and Google's token endpoint, which checks the assertion as RFC 7523 says. */
export const startFcm = async (now: () => Date) => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const pushes: Push[] = []
  let decide: Decide = () => undefined
  let issued = 0
  let valid = ''
  let grant: () => Reply | undefined = () => undefined
  const google = await startHttpsReceiver({
    handler: async (request, response) => {
      const form = new URLSearchParams(request.body)
      const answer = (status: number, body: object, headers: object = {}) =>
        response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
      const refused = grant()
      if (refused) return answer(refused.status, refused.body ?? {}, refused.headers)
      try {
        if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') throw new Error('grant')
        await jwtVerify(form.get('assertion') ?? '', publicKey, {
          issuer: 'push@example.iam.gserviceaccount.com',
          audience: google.url,
          currentDate: now(),
          algorithms: ['RS256'],
        })
      } catch {
        return answer(400, { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' })
      }
      issued += 1
      // as long as real ones
      valid = `ya29.${issued}.${'x'.repeat(1500)}`
      return answer(200, { access_token: valid, expires_in: 3599, token_type: 'Bearer' })
    },
  })
  const fcmError = (status: number, name: string, errorCode?: string): Reply => ({
    status,
    body: {
      error: {
        code: status,
        message: 'no',
        status: name,
        ...(errorCode
          ? { details: [{ '@type': 'type.googleapis.com/google.firebase.fcm.v1.FcmError', errorCode }] }
          : {}),
      },
    },
  })
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    const push = { path: request.url ?? '', headers: request.headers, body: JSON.parse(text) }
    let reply: Reply | undefined
    if (request.headers.authorization !== `Bearer ${valid}`) reply = fcmError(401, 'UNAUTHENTICATED')
    else if (push.body.validate_only) reply = fcmError(400, 'INVALID_ARGUMENT', 'INVALID_ARGUMENT')
    else {
      pushes.push(push)
      reply = await decide(push)
    }
    response.writeHead(reply?.status ?? 200, { 'content-type': 'application/json', ...reply?.headers })
    response.end(JSON.stringify(reply?.body ?? { name: 'projects/example/messages/1' }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    caFile: google.caFile,
    tokenUrl: google.url,
    config: {
      service_account_json: {
        type: 'service_account',
        project_id: 'example',
        client_email: 'push@example.iam.gserviceaccount.com',
        private_key: pem(privateKey),
        token_uri: google.url,
      },
    },
    pushes,
    issued: () => issued,
    error: fcmError,
    answer: (next: Decide) => {
      decide = next
    },
    grant: (next: () => Reply | undefined) => {
      grant = next
    },
    revoke: () => {
      valid = 'revoked'
    },
    destroy: () => server.closeAllConnections(),
    async close() {
      server.closeAllConnections()
      server.close()
      await google.close()
    },
  }
}
