import { mkdtemp } from 'node:fs/promises'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { createS3Storage } from '#server/media/s3.ts'
import { parseAllowedCidrs } from '#server/providers/addresses.ts'
import { createKeyset } from '#server/providers/keysets.ts'
import { createMail } from '#server/providers/mail.ts'
import { createOutbound } from '#server/providers/outbound.ts'
import { createApns } from '#server/providers/push/apns.ts'
import { createFcm } from '#server/providers/push/fcm.ts'
import type { Claimed } from '#server/providers/push/message.ts'
import { sendSms } from '#server/providers/sms.ts'
import { createUpstream, type ProviderUrls } from '#server/providers/upstream.ts'
import { type ProviderName, providers } from '#server/providers/upstream_requests.ts'
import { createTelemetry } from '#server/telemetry/telemetry.ts'
import { createTraces } from '#server/telemetry/traces.ts'
import { startApns, startFcm } from '#test/support/push_providers.ts'

/**
 * Every path on which this server calls another one, and what the other may do instead of an answer. When it is asked again after a 429: push-providers,
 * webhooks-retries, control_webhooks-delivery, upstream, email-smtp.
 */
const now = () => new Date()
const log = pino({ level: 'silent' })
const allowedCidrs = parseAllowedCidrs('127.0.0.0/8')

const spansOff = {
  METRICS_PORT: undefined,
  METRICS_TOKEN: undefined,
  OTEL_TRACES_EXPORTER: 'none',
  OTEL_TRACES_SAMPLER: 'always_off',
  OTEL_TRACES_SAMPLER_ARG: 1,
} as const

const behaviours: Record<string, (socket: Socket) => void> = {
  'takes the connection and says nothing': () => undefined,
  'sends a byte a second': (socket) => {
    const text = 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n'
    let at = 0
    const timer = setInterval(() => {
      socket.write(text[at] ?? ' ')
      at += 1
    }, 1000)
    socket.on('close', () => clearInterval(timer))
  },
  'sends headers and then a byte a second': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n')
    const timer = setInterval(() => socket.write(' '), 1000)
    socket.on('close', () => clearInterval(timer))
  },
  'asks to wait an hour': (socket) => {
    socket.once('data', () =>
      socket.write('HTTP/1.1 429 Too Many Requests\r\nretry-after: 3600\r\ncontent-length: 0\r\n\r\n'),
    )
  },
  'resets the connection': (socket) => {
    socket.once('data', () => socket.resetAndDestroy())
    setTimeout(() => socket.resetAndDestroy(), 100)
  },
}

const startPeer = async (behave: (socket: Socket) => void) => {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.resume()
    behave(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

const upstreamTo = (provider: ProviderName) => async (port: number) => {
  const urls = Object.fromEntries(Object.values(providers).map((name) => [name, `http://127.0.0.1:${port}`]))
  const upstream = createUpstream({ urls: urls as ProviderUrls, log })
  onTestFinished(() => upstream.close())
  const answer = await upstream.call({ provider, projectId: 'p', method: 'POST', path: '/x', json: {}, timeoutMs: 500 })
  if (answer.failure !== null || answer.status >= 400) throw new Error(answer.failure ?? `status ${answer.status}`)
}
const outboundTo = async (port: number) => {
  const outbound = createOutbound({ allowedCidrs, timeoutMs: 500 })
  onTestFinished(() => outbound.close())
  const { statusCode, error } = await outbound.post({ url: `https://127.0.0.1:${port}/`, headers: {}, body: '{}' })
  if (statusCode === null) throw new Error(error ?? '')
}
const mail = { to: 'one@example.org', subject: 'x', text: 'y' }
const mailOptions = async () => ({
  from: 'us@example.org',
  folder: await mkdtemp(join(tmpdir(), 'mail-')),
  now,
  log,
  allowedCidrs,
  longestMs: 500,
})

const apns = await startApns(now)
const fcm = await startFcm(now)
const delivery: Claimed = {
  id: '00000000-0000-4000-8000-000000000001',
  attempt_id: '00000000-0000-4000-8000-000000000002',
  campaign_id: null,
  message: { title: 'x', body: 'y' },
  badge: null,
  tokens: [],
  expires_at: new Date(Date.now() + 86_400_000).toISOString(),
}
const device = (provider: 'apns' | 'fcm') => ({ id: delivery.id, token: 'device', provider })

/** Each ends, by an error or by an answer that says so, in less than so many milliseconds. */
const paths: Record<string, readonly [call: (port: number) => Promise<unknown>, mostMs: number]> = {
  'webhooks, and those of the control plane': [outboundTo, 2_000],
  SMS: [
    async (port) => {
      const outbound = createOutbound({ allowedCidrs, timeoutMs: 500 })
      onTestFinished(() => outbound.close())
      await sendSms(
        outbound,
        { url: `https://127.0.0.1:${port}/`, body_template: '{}' },
        { to: '+1', text: 'x', id: '1' },
      )
    },
    2_000,
  ],
  'the token endpoint of FCM': [
    async (port) => {
      const outbound = createOutbound({ allowedCidrs, timeoutMs: 500 })
      onTestFinished(() => outbound.close())
      const { service_account_json: account } = fcm.config
      const config = { service_account_json: { ...account, token_uri: `https://127.0.0.1:${port}/` } }
      const provider = createFcm(config, { url: fcm.url, outbound, now })
      onTestFinished(() => provider.close())
      expect(await provider.send(delivery, device('fcm'))).toMatchObject({ outcome: 'retry', code: 'NO_ACCESS_TOKEN' })
      throw new Error('no token')
    },
    3_000,
  ],
  FCM: [
    async (port) => {
      const outbound = createOutbound({ allowedCidrs, caFile: fcm.caFile })
      onTestFinished(() => outbound.close())
      const provider = createFcm(fcm.config, { url: `http://127.0.0.1:${port}`, outbound, now })
      onTestFinished(() => provider.close())
      const { outcome, status } = await provider.send(delivery, device('fcm'))
      if (status === null) throw new Error(outcome)
    },
    14_000,
  ],
  APNs: [
    async (port) => {
      const provider = createApns(apns.config, { url: `http://127.0.0.1:${port}`, now })
      onTestFinished(() => provider.close())
      expect(await provider.send(delivery, device('apns'))).toMatchObject({ outcome: 'retry', code: 'NO_ANSWER' })
      throw new Error('no answer')
    },
    14_000,
  ],
  'the mail server of a project': [
    async (port) =>
      createMail({ ...(await mailOptions()), smtpUrl: undefined }).send(mail, { host: '127.0.0.1', port }),
    2_000,
  ],
  SMTP_URL: [
    async (port) => {
      const made = createMail({ ...(await mailOptions()), smtpUrl: `smtp://127.0.0.1:${port}?tls=off` })
      onTestFinished(() => made.close())
      await made.send(mail)
    },
    2_000,
  ],
  'keys of Apple and Google': [
    (port) => createKeyset({ url: `http://127.0.0.1:${port}/keys`, now, log }).key('k', 'RS256'),
    7_000,
  ],
  'a storage of S3': [
    async (port) => {
      const limits = { answerMs: 500, silenceMs: 500 }
      const storage = createS3Storage(`s3://key:secret@127.0.0.1:${port}/bucket?tls=off`, now, limits)
      onTestFinished(() => storage.close())
      for await (const _ of storage.list('p'));
    },
    4_000,
  ],
  'a collector of figures': [
    async (port) => {
      const config = { HOST: '127.0.0.1', OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` } as const
      const telemetry = await createTelemetry({ ...config, ...spansOff } as Parameters<typeof createTelemetry>[0], log)
      await telemetry.close()
      throw new Error('the figures are lost')
    },
    10_000,
  ],
  'a collector of OTLP': [
    async (port) => {
      const config = {
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
        OTEL_TRACES_EXPORTER: 'otlp',
        OTEL_TRACES_SAMPLER: 'always_on',
        OTEL_TRACES_SAMPLER_ARG: 1,
      } as const
      const traces = await createTraces(config, {}, log)
      traces.job('a job', {}, []).end()
      await traces.close()
      throw new Error('the spans are lost')
    },
    10_000,
  ],
  ...Object.fromEntries(
    (['openai', 'anthropic', 'github', 'revenuecat', 'superwall'] as const).map((name) => [
      name,
      [upstreamTo(name), 2_000] as const,
    ]),
  ),
}

test('no path waits for ever for a server that does not answer', { timeout: 60_000 }, async () => {
  onTestFinished(async () => {
    await Promise.all([apns.close(), fcm.close()])
  })
  const found = await Promise.all(
    Object.entries(paths).flatMap(([path, [call, mostMs]]) =>
      Object.entries(behaviours).map(async ([behaviour, behave]) => {
        const port = await startPeer(behave)
        const began = performance.now()
        const { promise: tooLate, resolve } = Promise.withResolvers<'hangs'>()
        const timer = setTimeout(resolve, 30_000, 'hangs')
        const ended = await Promise.race([
          call(port).then(
            () => 'answered',
            () => 'failed',
          ),
          tooLate,
        ])
        clearTimeout(timer)
        const ms = performance.now() - began
        // a status that came before the bytes stopped is an answer, where nothing else is read; so is one that says when to come again
        const isFine =
          ended === 'failed' || (path === 'FCM' && ended === 'answered' && /^(sends headers|asks)/.test(behaviour))
        return { path, behaviour, ended, isFine, isInTime: ms < mostMs + 5_000, ms: Math.round(ms) }
      }),
    ),
  )
  expect(found.filter(({ isFine, isInTime }) => !isFine || !isInTime)).toEqual([])
})
