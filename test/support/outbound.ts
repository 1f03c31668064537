import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { AddressInfo, Server, Socket } from 'node:net'
import { afterEach } from 'vitest'
import { parseAllowedCidrs } from '#server/providers/addresses.ts'
import { type Address, createOutbound, type OutboundOptions } from '#server/providers/outbound.ts'
import { type ReceiverOptions, startHttpsReceiver } from '#test/support/https.ts'

export const addresses = (...list: string[]): Address[] =>
  list.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))

export const request = (url: string) => ({ url, headers: {}, body: '{"a":1}' })

/** Clients, receivers and servers for tests of outbound requests; all of them are closed after each test. */
export const startOutbound = () => {
  const closing: (() => Promise<unknown> | unknown)[] = []
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close()
  })

  const receiver = async (options?: ReceiverOptions) => {
    const started = await startHttpsReceiver(options)
    closing.push(started.close)
    return started
  }

  const outbound = (options: Partial<OutboundOptions> = {}) => {
    const made = createOutbound({ allowedCidrs: parseAllowedCidrs('127.0.0.0/8'), ...options })
    closing.push(made.close)
    return made
  }

  const answering = (handler: (response: ServerResponse) => unknown) =>
    receiver({ handler: (_request, response) => handler(response) })

  const listening = async (server: Server) => {
    const sockets = new Set<Socket>()
    server.on('connection', (socket) => sockets.add(socket))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    closing.push(() => {
      for (const socket of sockets) socket.destroy()
      return new Promise((done) => server.close(done))
    })
    return { port: (server.address() as AddressInfo).port, sockets }
  }

  /** A name server that answers A queries with one list after the other, TTL 0, and AAAA queries with no address. */
  const nameServer = async (...answers: string[][]) => {
    const socket = createSocket('udp4')
    let asked = 0
    socket.on('message', (question, from) => {
      const end = question.indexOf(0, 12) + 5
      const isA = question.readUInt16BE(end - 4) === 1
      const found = isA ? (answers[Math.min(asked++, answers.length - 1)] ?? []) : []
      const head = Buffer.from(question.subarray(0, 12))
      head.writeUInt16BE(0x8180, 2)
      for (const [offset, count] of [
        [6, found.length],
        [8, 0],
        [10, 0],
      ] as const)
        head.writeUInt16BE(count, offset)
      const records = found.map((ipv4) =>
        Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...ipv4.split('.').map(Number)]),
      )
      socket.send(Buffer.concat([head, question.subarray(12, end), ...records]), from.port, from.address)
    })
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    closing.push(() => new Promise<void>((done) => socket.close(done)))
    return { port: socket.address().port, asked: () => asked }
  }

  return { receiver, outbound, answering, listening, nameServer }
}
