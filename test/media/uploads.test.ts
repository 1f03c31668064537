import { readdir, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { commit, put, refusedWith, register, setTier, storedOf, textOf } from '#test/support/media.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()
const paid = await harness.project()
await setTier(harness, paid, 'pro')

const MB = 1048576

test('an upload URL takes four requests at once, so that it cannot fill the disk', async () => {
  const user = await project.user()
  const { id, uploadUrl } = await register(user, { size_bytes: 1000 })
  const { pathname, search, hostname, port } = new URL(uploadUrl)
  const sockets = [1, 2, 3, 4].map(() => {
    const socket = connect(Number(port), hostname)
    socket.write(
      `PUT ${pathname}${search} HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\nhello`,
    )
    return socket
  })
  const names = () => storedOf(harness, project).then((all) => all.filter((name) => name.includes(id)))
  await expect.poll(names).toHaveLength(4)
  const refused = await put(uploadUrl, 'x'.repeat(1000))
  expect([refused.headers.get('retry-after'), ...(await refusedWith(refused))]).toEqual(['5', 429, 'RATE_LIMITED'])
  for (const socket of sockets) socket.destroy()
  await expect.poll(names).toEqual([])
  expect((await put(uploadUrl, 'x'.repeat(1000))).status).toBe(200)
})

test('an upload that is refused is read to its end, so that its sender sees the answer', async () => {
  const { uploadUrl } = await register(await project.user(), { size_bytes: 4 * MB })
  const { pathname, search, hostname, port } = new URL(uploadUrl)
  for (const [path, status] of [
    [`${pathname}${search}`, 400],
    [`${pathname}${search}x`, 403],
  ] as const) {
    const socket = connect(Number(port), hostname)
    let text = ''
    socket.on('data', (bytes) => {
      text += bytes
    })
    socket.write(`PUT ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: image/png\r\nContent-Length: ${4 * MB}\r\n\r\n`)
    await expect.poll(() => text).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    text = ''
    socket.write(Buffer.alloc(4 * MB))
    socket.write('GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    await expect.poll(() => text).toMatch(/^HTTP\/1.1 200 /)
    socket.destroy()
  }
})

describe('resumable parts', () => {
  const part = (url: string, text: string, range: string) => put(url, text, 'text/plain', { 'content-range': range })
  const offsetOf = async (url: string) => {
    const answer = await fetch(url, { method: 'HEAD' })
    return [answer.status, Number(answer.headers.get('upload-offset'))]
  }

  test('come in order, again, and after a lost answer', async () => {
    const user = await project.user()
    const { id, uploadUrl } = await register(user, { size_bytes: 12 })
    expect(await offsetOf(uploadUrl)).toEqual([200, 0])
    const first = await part(uploadUrl, 'abcd', 'bytes 0-3/12')
    expect([first.status, first.headers.get('upload-offset'), first.headers.get('range')]).toEqual([
      308,
      '4',
      'bytes=0-3',
    ])
    expect(await offsetOf(uploadUrl)).toEqual([200, 4])
    // after a gap, and again: nothing is stored, and the answer says where to go on
    for (const [text, range] of [
      ['ijkl', 'bytes 8-11/12'],
      ['abcd', 'bytes 0-3/12'],
      ['ab', 'bytes 0-1/12'],
    ] as const) {
      const answer = await part(uploadUrl, text, range)
      expect([answer.status, answer.headers.get('upload-offset')], range).toEqual([308, '4'])
    }
    // one that overlaps what is there
    const second = await part(uploadUrl, 'cdefgh', 'bytes 2-7/12')
    expect([second.status, second.headers.get('upload-offset')]).toEqual([308, '8'])
    expectRefusal(await commit(user, id), 409, 'UPLOAD_NOT_FOUND')
    const last = await part(uploadUrl, 'ijkl', 'bytes 8-11/12')
    expect([last.status, await last.json()]).toEqual([200, { data: { size_bytes: 12 } }])
    expect(await offsetOf(uploadUrl)).toEqual([200, 12])
    const { data } = await commit(user, id)
    expect((await textOf(data.storage_url)).text).toBe('abcdefghijkl')
    expect((await storedOf(harness, project)).filter((name) => name.includes(id))).toHaveLength(1)
  })

  test('that overlap store no byte twice', async () => {
    const user = await project.user()
    const { id, uploadUrl } = await register(user, { size_bytes: 12 })
    for (const end of [3, 4, 5, 6]) {
      const answer = await part(uploadUrl, 'abcdefg'.slice(0, end + 1), `bytes 0-${end}/12`)
      expect([answer.status, answer.headers.get('upload-offset')]).toEqual([308, String(end + 1)])
    }
    const parts = (await storedOf(harness, project)).flatMap((name) =>
      name.includes(id) ? (/part-\d+-\d+-12$/.exec(name) ?? []) : [],
    )
    expect(parts.sort()).toEqual(['part-0-3-12', 'part-4-4-12', 'part-5-5-12', 'part-6-6-12'])
    expect((await part(uploadUrl, 'fghijkl', 'bytes 5-11/12')).status).toBe(200)
    expect((await textOf((await commit(user, id)).data.storage_url)).text).toBe('abcdefghijkl')
  })

  test('become the whole where a crash has kept the last one and not made it', async () => {
    const user = await paid.user()
    const folder = join(harness.running.services.config.DATA_DIR, 'media', paid.id, 'uploads')
    const parts = async (more: Record<string, unknown>) => {
      const { id, uploadUrl } = await register(user, more)
      expect((await part(uploadUrl, 'abcd', 'bytes 0-3/8')).status).toBe(308)
      const [first = ''] = (await readdir(join(folder, id))).filter((name) => name.endsWith('.part-0-3-8'))
      await writeFile(join(folder, id, first.replace('0-3', '4-7')), 'efgh')
      return { id, uploadUrl }
    }
    // who asks how far it is, and who sends the last part again, is not told of bytes that no commit finds
    const asked = await parts({ size_bytes: 8 })
    expect(await offsetOf(asked.uploadUrl)).toEqual([200, 8])
    const unknown = await parts({ size_bytes: undefined })
    expect(await offsetOf(unknown.uploadUrl)).toEqual([200, 8])
    const sent = await parts({ size_bytes: undefined })
    expect((await part(sent.uploadUrl, 'efgh', 'bytes 4-7/8')).status).toBe(200)
    for (const { id } of [asked, unknown, sent])
      expect((await textOf((await commit(user, id)).data.storage_url)).text).toBe('abcdefgh')
  })

  test('whose last one comes twenty times at once become the whole once', async () => {
    const user = await project.user()
    for (let round = 0; round < 10; round += 1) {
      const { id, uploadUrl } = await register(user, { size_bytes: 8 })
      await part(uploadUrl, 'abcd', 'bytes 0-3/8')
      const answers = await Promise.all(Array.from({ length: 20 }, () => part(uploadUrl, 'efgh', 'bytes 4-7/8')))
      expect(answers.map(({ status }) => status).filter((status) => status !== 200 && status !== 429)).toEqual([])
      expect((await textOf((await commit(user, id)).data.storage_url)).text).toBe('abcdefgh')
    }
  })

  test('of another size than what has come are refused: nothing is said to be stored that is not', async () => {
    const user = await paid.user()
    const { uploadUrl } = await register(user, { size_bytes: undefined })
    expect((await part(uploadUrl, 'abcd', 'bytes 0-3/12')).status).toBe(308)
    expect(await refusedWith(await part(uploadUrl, 'xy', 'bytes 0-1/2'))).toEqual([400, 'INVALID_INPUT'])
    expect(await refusedWith(await part(uploadUrl, 'efgh', 'bytes 4-7/8'))).toEqual([400, 'INVALID_INPUT'])
    expect(await offsetOf(uploadUrl)).toEqual([200, 4])
    expect((await put(uploadUrl, 'abcdefgh')).status).toBe(200)
    for (const [text, range] of [
      ['xy', 'bytes 0-1/2'],
      ['ijkl', 'bytes 8-11/12'],
    ] as const)
      expect(await refusedWith(await part(uploadUrl, text, range)), range).toEqual([400, 'INVALID_INPUT'])
    expect(await offsetOf(uploadUrl)).toEqual([200, 8])
  })

  test('are at most a thousand', async () => {
    const user = await project.user()
    const { uploadUrl } = await register(user, { size_bytes: 2000 })
    for (let at = 0; at < 1000; at += 1) await part(uploadUrl, 'x', `bytes ${at}-${at}/2000`)
    expect(await offsetOf(uploadUrl)).toEqual([200, 1000])
    expect(await refusedWith(await part(uploadUrl, 'x', 'bytes 1000-1000/2000'))).toEqual([400, 'INVALID_INPUT'])
    // as a whole it may still come
    expect((await put(uploadUrl, 'x'.repeat(2000))).status).toBe(200)
  })

  test('are refused where they do not fit', async () => {
    const user = await project.user()
    const { uploadUrl } = await register(user, { size_bytes: 12 })
    for (const range of [
      'bytes 0-3/13',
      'bytes 0-3/*',
      'bytes 4-3/12',
      'bytes 0-12/12',
      '0-3/12',
      'bytes 0-4/12',
      'bytes */12',
    ])
      expect(await refusedWith(await part(uploadUrl, 'abcd', range)), range).toEqual([400, 'INVALID_INPUT'])
    expect(await offsetOf(uploadUrl)).toEqual([200, 0])
  })
})
