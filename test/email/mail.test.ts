import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { pino } from 'pino'
import { afterAll, expect, test } from 'vitest'
import { StartError } from '#server/errors.ts'
import { parseAllowedCidrs } from '#server/providers/addresses.ts'
import { createMail } from '#server/providers/mail.ts'
import { parse, startMailServer } from '#test/support/smtp.ts'

const server = await startMailServer()
const folder = await mkdtemp(join(tmpdir(), 'trellis-mail-'))
const at = new Date('2026-12-01T10:00:00.000Z')
const lines: string[] = []
const sink = new Writable({
  write(chunk, _encoding, done) {
    lines.push(String(chunk))
    done()
  },
})
const log = pino(sink)
const options = { smtpUrl: server.url, from: 'Trellis <no-reply@example.org>', folder, now: () => at, log }
const mail = createMail(options)

afterAll(async () => {
  mail.close()
  await server.stop()
  await rm(folder, { recursive: true })
})

test('a message goes out over SMTP as it was written', async () => {
  const text = 'Ünïcode, and a line that is so long that every mail program has to break it somewhere: 123456\n\n.dot'
  await mail.send({ to: 'one@example.org', subject: 'Your códe', text, id: 'stable' })
  const [got] = server.to('one@example.org')
  expect(got?.from).toBe('no-reply@example.org')
  expect(got?.headers).toMatchObject({
    from: 'Trellis <no-reply@example.org>',
    to: 'one@example.org',
    'message-id': '<stable@example.org>',
    'auto-submitted': 'auto-generated',
    date: 'Tue, 01 Dec 2026 10:00:00 +0000',
  })
  expect(got?.text).toBe(text)
})

test('a sender of its own, a brand and an address to answer to', async () => {
  await mail.send({
    to: 'two@example.org',
    subject: 'x',
    text: 'plain',
    html: '<p>rich</p>',
    from: { name: 'An, "app"', address: 'hello@app.example' },
    replyTo: 'help@app.example',
  })
  await mail.send({ to: 'two@example.org', subject: 'x', text: 'y', fromName: 'Brand' })
  const [own, branded] = server.to('two@example.org')
  expect(own?.headers.from).toBe('"An, \\"app\\"" <hello@app.example>')
  expect(own?.headers['reply-to']).toBe('help@app.example')
  expect(own?.text).toBe('plain')
  expect(own?.raw).toContain('<p>rich</p>')
  expect(branded?.headers.from).toBe('Brand <no-reply@example.org>')
})

test('no address or subject can smuggle a header or a second recipient in', async () => {
  const before = server.received.length
  for (const to of [
    'a@example.org\r\nBcc: b@example.org',
    'a@example.org, b@example.org',
    'A <a@example.org>',
    'a',
    '',
  ]) {
    await expect(mail.send({ to, subject: 'x', text: 'y' })).rejects.toThrow('one address')
  }
  await expect(
    mail.send({ to: 'a@example.org', replyTo: 'b@example.org\r\nX: y', subject: 'x', text: 'y' }),
  ).rejects.toThrow('one address')
  expect(server.received.length).toBe(before)
  await mail.send({ to: 'three@example.org', subject: 'x\r\nBcc: b@example.org', text: 'y', fromName: 'n\r\nX: y' })
  const [got] = server.to('three@example.org')
  expect(got?.to).toEqual(['three@example.org'])
  expect(got?.headers.bcc).toBeUndefined()
  expect(got?.headers.x).toBeUndefined()
})

test('what sign-up takes for an address, mail does too', async () => {
  for (const to of ["o'brien+tag@example.org", 'a:b@example.org', '[x]@example.org', 'ü@example.org']) {
    await mail.send({ to, subject: 'x', text: 'y' })
    expect(server.received.at(-1)?.to).toHaveLength(1)
  }
})

test('what the server refuses is thrown, and the next message goes', async () => {
  server.refuse(451)
  await expect(mail.send({ to: 'four@example.org', subject: 'x', text: 'y' })).rejects.toThrow('451')
  server.refuse(null)
  await mail.send({ to: 'four@example.org', subject: 'x', text: 'y' })
  expect(server.to('four@example.org')).toHaveLength(1)
})

test('without SMTP each mail is a file that only we may read, and its subject is logged', async () => {
  const files = createMail({ ...options, smtpUrl: undefined, folder: join(folder, 'mail') })
  const message = { to: 'a/../b@example.org', subject: 'A subject', text: 'the code is 123456' }
  await Promise.all([
    files.send({ ...message, to: 'five@example.org' }),
    files.send({ ...message, to: 'five@example.org' }),
  ])
  const names = (await readdir(join(folder, 'mail'))).sort()
  expect(names).toEqual([
    '2026-12-01T10-00-00.000Z-five@example.org-1.eml',
    '2026-12-01T10-00-00.000Z-five@example.org.eml',
  ])
  const file = join(folder, 'mail', names[0] ?? '')
  expect(parse('', [], await readFile(file, 'utf8')).text).toBe('the code is 123456')
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  await files.send(message)
  expect(await readdir(join(folder, 'mail'))).toContain('2026-12-01T10-00-00.000Z-a_.._b@example.org.eml')
  expect(lines.join('')).toContain('A subject')
  expect(lines.join('')).not.toContain('123456')
})

test('settings that cannot work are named at start', () => {
  expect(() => createMail({ ...options, smtpUrl: 'mail.example.org' })).toThrow(StartError)
  expect(() => createMail({ ...options, smtpUrl: 'http://mail.example.org' })).toThrow('SMTP_URL')
  expect(() => createMail({ ...options, from: 'nobody' })).toThrow('MAIL_FROM')
})

test('a mail server of a project that answers a byte now and then does not hold the worker', async () => {
  const tarpit = createServer((socket) => {
    socket.write('220 hello\r\n')
    const timer = setInterval(() => socket.write('250-x\r\n'), 20)
    socket.on('error', () => undefined).on('close', () => clearInterval(timer))
  })
  await new Promise<void>((resolve) => tarpit.listen(0, '127.0.0.1', resolve))
  const { port } = tarpit.address() as { port: number }
  const slow = createMail({ ...options, allowedCidrs: parseAllowedCidrs('127.0.0.0/8'), longestMs: 300 })
  const by = { host: '127.0.0.1', port }
  await expect(slow.send({ to: 'one@example.org', subject: 'x', text: 'y' }, by)).rejects.toThrow('took too long')
  await expect(slow.verify(by)).rejects.toThrow('took too long')
  await new Promise((resolve) => tarpit.close(resolve))
})
