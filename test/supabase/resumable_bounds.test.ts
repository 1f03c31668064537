import { mkdir, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { commit, put, setTier, storedOf } from '#test/support/media.ts'
import { newBucket, storageOf, textOf } from '#test/support/supabase_storage.ts'
import { meetingBehind } from '#test/support/transaction.ts'
import { offsetType, tusOf, upsert } from '#test/support/tus.ts'
import { loadTasks } from '#workers/task.ts'

/** What resumable uploads count, whose they are, and what is left of those that become no file. */
const harness = await startHarness({ env: { LOG_LEVEL: 'silent', GENERAL_RATE_LIMITS: 'off' } })
const MB = 1048576

const start = async () => {
  const project = await harness.project()
  await project.admin.patch('', { rest_enabled: true })
  const user = await project.user()
  const tus = tusOf(harness, project, user.sessionToken)
  const files = storageOf(harness, project, user.sessionToken).from('media')
  const own = (name: string) => `user/${user.id}/${name}`
  const counted = async () =>
    (await project.sql('select coalesce(sum(registered_bytes), 0)::int as bytes from app.media_totals'))[0].bytes
  const stored = () => storedOf(harness, project)
  const begun = async (name: string, size: number, headers = {}) => {
    const { status, url, code } = await tus.create(own(name), size, headers)
    expect([status, code]).toEqual([201, ''])
    return url
  }
  return { project, user, tus, files, own, counted, stored, begun }
}
const placeOf = (url: string) =>
  JSON.parse(Buffer.from(url.split('/').at(-1) as string, 'base64url').toString()) as Record<string, string>

describe('the budget of a free project', () => {
  test('counts an upload when it begins, so that its last part is never refused', async () => {
    const { project, tus, files, own, counted, begun, stored } = await start()
    expect((await tus.create(own('a'), 1, {}, 'media')).status).toBe(201)
    expect((await files.upload(own('b'), 'b', { contentType: 'text/plain' })).error).toBeNull()
    for (let n = 0; n < 4; n += 1) await begun(`full-${n}`, 50 * MB)
    expect(await counted()).toBe(200 * MB + 2)
    // what replaces a file counts as much as what is new, with the file that it replaces
    const over = await begun('b', 50 * MB - 1, upsert)
    expect(await counted()).toBe(250 * MB)
    expect(await tus.create(own('c'), 1)).toMatchObject({ status: 402 })
    expect(await tus.create(own('a'), 2)).toMatchObject({ status: 402 })
    // begun anew, it counts once
    const again = await begun('b', 5, upsert)
    expect(await counted()).toBe(200 * MB + 6)
    expect((await tus.at(over)).status).toBe(404)
    await begun('full-4', 50 * MB - 6)
    expect(await tus.create(own('c'), 1)).toMatchObject({ status: 402 })
    expect((await tus.patch(again, 0, 'hello')).status).toBe(204)
    expect(await textOf(files, own('b'))).toBe('hello')
    expect(await counted()).toBe(250 * MB)
    expect((await stored()).filter((name) => name.startsWith('uploads/'))).toEqual([])
    await project.sql(`update app.media_assets set status = 'deleted' where key like '%/full-%'`)
    expect(await counted()).toBe(6)
  })

  test('frees what an upload that is given up, or not completed in a day, was to have', async () => {
    const { project, tus, files, own, counted, begun, stored } = await start()
    await files.upload(own('a'), 'kept', { contentType: 'text/plain' })
    const given = await begun('a', 10 * MB, upsert)
    expect((await tus.patch(given, 0, 'part')).status).toBe(204)
    expect((await tus.ask('DELETE', given)).status).toBe(204)
    expect([await counted(), (await tus.at(given)).status, (await stored()).length]).toEqual([4, 404, 1])
    expect((await tus.patch(given, 0, 'part')).status).toBe(404)
    await begun('a', 10 * MB, upsert)
    const fresh = await begun('fresh', 10 * MB)
    expect(await counted()).toBe(20 * MB)
    await project.sql(`update app.media_assets set created_at = created_at - interval '23 hours',
      upload_expires_at = upload_expires_at - interval '23 hours'`)
    const { jobs } = await loadTasks()
    const maintain = async () => {
      await jobs.find(({ name }) => name === 'fleet__maintain')?.run(harness.running.services, {})
      await project.drain()
    }
    await maintain()
    expect(await counted()).toBe(20 * MB)
    await project.sql(`update app.media_assets set created_at = created_at - interval '2 hours',
      upload_expires_at = upload_expires_at - interval '2 hours'`)
    await project.sql(`delete from app.outbox`)
    await project.sql(`select internal.enqueue('media__clean')`)
    await project.drain()
    expect([await counted(), (await tus.at(fresh)).status]).toEqual([4, 404])
    expect(await textOf(files, own('a'))).toBe('kept')
  })

  test('is asked when a commit brings more than was counted, by whatever route', async () => {
    const { project, user, files, own } = await start()
    await files.upload(own('a'), 'kept', { contentType: 'text/plain' })
    await setTier(harness, project, 'pro')
    const signed = await user.post('/client/media/presign', {
      bucket: 'media',
      key: own('a'),
      method: 'PUT',
      content_type: 'text/plain',
    })
    expect((await put(signed.data.url, 'much more')).status).toBe(200)
    await project.sql(`insert into app.media_totals (registered_bytes, stored_bytes, objects) values ($1, 0, 0)`, [
      250 * MB - 4,
    ])
    await setTier(harness, project, 'free')
    expect(await commit(user, signed.data.asset_id)).toMatchObject({ status: 402 })
    expect(await textOf(files, own('a'))).toBe('kept')
    await setTier(harness, project, 'pro')
    expect((await commit(user, signed.data.asset_id)).status).toBe(200)
  })
})

test('a user has a hundred uploads under way, whatever the project pays', async () => {
  const { project, tus, own, begun } = await start()
  await setTier(harness, project, 'pro')
  const first = await begun('0', 1)
  for (let n = 1; n < 100; n += 1) await begun(String(n), 1)
  expect(await tus.create(own('more'), 1)).toMatchObject({ status: 409 })
  // the one that is there may begin anew, and one that is over makes room
  const anew = await begun('0', 1)
  expect((await tus.at(first)).status).toBe(404)
  expect((await tus.patch(anew, 0, 'a')).status).toBe(204)
  await begun('more', 1)
  expect(await tus.create(own('again'), 1)).toMatchObject({ status: 409 })
  const other = await project.user()
  expect((await tusOf(harness, project, other.sessionToken).create(`user/${other.id}/a`, 1)).status).toBe(201)
})

describe('of requests at once', () => {
  test('with the last part one makes the file, once', async () => {
    const { project, tus, files, own, counted, begun, stored } = await start()
    const url = await begun('a', 8)
    expect((await tus.patch(url, 0, 'half')).status).toBe(204)
    const ends = ['-one', '-two', '-six', '-ten']
    const { asset } = placeOf(url)
    const answers = await meetingBehind(
      project.database,
      `select from app.media_assets where id = '${asset}' for update`,
      () => ends.map((text) => tus.patch(url, 4, text)),
    )
    // one that comes when another has come whole is told where that is
    const taken = answers.filter(({ status }) => status === 204)
    expect(answers.filter(({ status }) => status === 409).length + taken.length).toBe(4)
    expect(new Set(taken.map(({ offset }) => offset))).toEqual(new Set(['8']))
    expect(ends.map((text) => `half${text}`)).toContain(await textOf(files, own('a')))
    expect([await counted(), (await stored()).length]).toEqual([8, 1])
    expect(await project.sql(`select sum(objects)::int as files from app.media_totals`)).toEqual([{ files: 1 }])
    const many = await begun('b', 4)
    const raced = await Promise.all(ends.map((text) => tus.patch(many, 0, text)))
    // one that began when the others had ended finds the file
    for (const { status } of raced) expect([204, 409]).toContain(status)
    expect(ends).toContain(await textOf(files, own('b')))
    expect((await stored()).length).toBe(2)
  })

  test('a part that arrives when its upload was given up or begun anew leaves nothing', async () => {
    const { tus, own, begun, stored } = await start()
    const sendSlowly = async (url: string, meanwhile: () => Promise<unknown>) => {
      const { hostname, port, pathname } = new URL(url)
      const socket = connect(Number(port), hostname)
      const head = Object.entries({
        ...tus.credentials,
        host: hostname,
        'tus-resumable': '1.0.0',
        'upload-offset': '0',
        'content-type': offsetType,
        'content-length': '10',
      }).map(([name, value]) => `${name}: ${value}\r\n`)
      const answered = new Promise<string>((resolve) => {
        let text = ''
        socket.on('data', (bytes) => {
          text += String(bytes)
          if (text.includes('\r\n\r\n')) resolve(text.slice(9, 12))
        })
      })
      socket.write(`PATCH ${pathname} HTTP/1.1\r\n${head.join('')}\r\nhello`)
      // its head has been read when what is open is asked for by a file of its own
      await expect.poll(() => begunBodies()).toBeGreaterThan(0)
      await meanwhile()
      socket.write('world')
      const status = await answered
      socket.destroy()
      return status
    }
    const begunBodies = async () => {
      const { readdir, readlink } = await import('node:fs/promises')
      const names = await readdir('/proc/self/fd')
      const paths = await Promise.all(names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')))
      return paths.filter((path) => path.includes('/received/')).length
    }
    for (const size of [10, 20]) {
      const url = await begun(`gone-${size}`, size)
      expect(await sendSlowly(url, () => tus.ask('DELETE', url))).toBe('404')
      expect(await stored()).toEqual([])
      const former = await begun(`again-${size}`, size)
      expect(await sendSlowly(former, () => tus.create(own(`again-${size}`), size))).toBe('404')
      expect(await stored()).toEqual([])
    }
  })
})

test('parts and the end of their upload, all at once: a file or nothing, and no byte beside it', async () => {
  const { project, tus, begun, stored } = await start()
  // as often as it takes to meet on the disk
  for (let n = 0; n < 40; n += 1) {
    const url = await begun(`at-once-${n}`, 20)
    const ends = await Promise.all([
      tus.patch(url, 0, '0123456789'),
      tus.ask('DELETE', url),
      tus.patch(url, 0, '01234567890123456789'),
    ])
    expect(ends.filter(({ status }) => ![204, 404, 409].includes(status))).toEqual([])
  }
  const files = await project.sql(`select object_version from app.media_assets where status = 'committed'`)
  expect((await stored()).map((name) => name.split('/').at(-1)).sort()).toEqual(
    files.map(({ object_version }) => object_version).sort(),
  )
})

test('an upload that is begun anew keeps no parts of the former one', async () => {
  const { tus, begun, stored } = await start()
  const former = await begun('a', 10)
  expect((await tus.patch(former, 0, 'hello')).status).toBe(204)
  expect((await stored()).length).toBe(1)
  const url = await begun('a', 10)
  expect(await stored()).toEqual([])
  expect((await tus.patch(former, 5, 'world')).status).toBe(404)
  expect(await tus.at(url)).toMatchObject({ status: 200, offset: '0' })
})

test.skipIf(process.platform !== 'linux')(
  'what a crash has left whole becomes the file when it is asked for',
  async () => {
    const { project, tus, files, own, begun } = await start()
    for (const [name, last] of [
      ['head', (url: string) => tus.at(url)],
      ['patch', (url: string) => tus.patch(url, 10, '')],
    ] as const) {
      const url = await begun(name, 10)
      expect((await tus.patch(url, 0, 'hello')).status).toBe(204)
      const { asset, version } = placeOf(url)
      const folder = join(harness.running.services.config.DATA_DIR, 'media', project.id, 'uploads', String(asset))
      // the server died when the last part had its name, and before the file was made
      await mkdir(dirname(folder), { recursive: true })
      await writeFile(join(folder, `${version}.part-5-9-10`), 'world')
      expect(['200', '204']).toContain(String((await last(url)).status))
      expect(await textOf(files, own(name))).toBe('helloworld')
    }
  },
)

test('a creation whose first bytes are refused begins nothing', async () => {
  const { tus, own, counted, stored } = await start()
  const { credentials, endpoint } = tus
  const words = { bucketName: 'media', objectName: own('a'), contentType: 'text/plain' }
  const metadata = Object.entries(words).map(([name, value]) => `${name} ${Buffer.from(value).toString('base64')}`)
  const headers = { ...credentials, 'tus-resumable': '1.0.0', 'content-type': offsetType, 'upload-length': '4' }
  const answer = await fetch(endpoint, {
    method: 'POST',
    headers: { ...headers, 'upload-metadata': metadata.join(',') },
    body: 'hello',
  })
  expect([answer.status, await counted(), await stored()]).toEqual([413, 0, []])
})

test('a known address is of use to nobody else', async () => {
  const { project, user, tus, begun, files, own } = await start()
  const other = await start()
  const url = await begun('a', 5)
  const stranger = await project.user()
  for (const one of [tusOf(harness, project, stranger.sessionToken), other.tus, tusOf(harness, other.project, null)]) {
    expect((await one.at(url)).status).toBe(404)
    expect((await one.patch(url, 0, 'other')).status).toBe(404)
    expect((await one.ask('DELETE', url)).status).toBe(404)
  }
  const key = { apikey: project.clientKey, 'tus-resumable': '1.0.0' }
  expect((await fetch(url, { method: 'HEAD', headers: key })).status).toBe(401)
  // the app's own server may do what the user may
  expect((await tusOf(harness, project, null).patch(url, 0, 'he')).status).toBe(204)
  expect((await tus.patch(url, 2, 'llo')).status).toBe(204)
  expect(await textOf(files, own('a'))).toBe('hello')
  // an address that names the place of another one
  const place = placeOf(await begun('b', 5))
  const forged = (more: object) =>
    `${tus.endpoint}/${Buffer.from(JSON.stringify({ ...place, ...more })).toString('base64url')}`
  expect((await tus.patch(forged({ key: `user/${stranger.id}/b` }), 0, 'hello')).status).toBe(404)
  expect((await tus.patch(forged({ bucket: 'nowhere' }), 0, 'hello')).status).toBe(404)
  expect((await tus.patch(forged({ size: 0 }), 0, 'hello')).status).toBe(404)
  expect((await tus.patch(forged({ more: 1 }), 0, 'hello')).status).toBe(404)
  expect(user.id).not.toBe(stranger.id)
})

test('numbers and words of a header are exact, or refused by name', async () => {
  const { tus, own, begun } = await start()
  for (const length of ['-1', '1.5', '1e3', '0x10', '+5', '5, 5', '9007199254740993', ''])
    expect(await tus.create(own('a'), length), length).toMatchObject({ status: 400, code: 'INVALID_INPUT' })
  expect(await tus.create(own('a'), '9'.repeat(15))).toMatchObject({ status: 413 })
  // lengths that are not known at first are not offered
  const { 'upload-metadata': _none, ...deferred } = { 'upload-defer-length': '1', 'upload-metadata': '' }
  expect(await tus.ask('POST', tus.endpoint, deferred)).toMatchObject({ status: 400, code: 'INVALID_INPUT' })
  const url = await begun('a', 10)
  for (const offset of ['-1', '0.0', '1e0', '0x0', '9007199254740993', ''])
    expect(await tus.patch(url, offset, 'hello'), offset).toMatchObject({ status: 400, code: 'INVALID_INPUT' })
  expect(await tus.patch(url, '9'.repeat(15), 'hello')).toMatchObject({ status: 409 })
  expect(await tus.at(url)).toMatchObject({ offset: '0' })

  const told = async (metadata: string) =>
    (await tus.ask('POST', tus.endpoint, { 'upload-length': '5', 'upload-metadata': metadata })).status
  const base64 = (text: string | Buffer) => Buffer.from(text).toString('base64')
  const right = `bucketName ${base64('media')},objectName ${base64(own('b'))}`
  for (const wrong of [
    'bucketName,objectName',
    `bucketName ${base64('media')}`,
    `bucketName ${base64('media\0')},objectName ${base64(own('b'))}`,
    `bucketName ${base64('media')},objectName ${base64(`${own('b')}\0`)}`,
    `bucketName ${base64('media')},objectName ${base64(own('../b'))}`,
    `${right},metadata ${base64('{"a":"\\u0000"}')}`,
    `${right},metadata ${base64(Buffer.from([123, 255, 125]))}`,
  ])
    expect(await told(wrong), wrong).toBeGreaterThanOrEqual(400)
  expect(await told(wrongly(right))).toBe(201)
})
/** Names that mean nothing, and one that objects have. */
const wrongly = (right: string) => `${right},__proto__ eA==, ,constructor,metadata !!!,more %%%`

test('a bucket with an upload is not deleted; emptied, it ends the upload', async () => {
  const { project, user, stored } = await start()
  const server = storageOf(harness, project)
  const bucket = await newBucket(server)
  const tus = tusOf(harness, project, user.sessionToken)
  const { url } = await tus.create(`${user.id}/a`, 10, {}, bucket.name)
  expect((await tus.patch(url, 0, 'hello')).status).toBe(204)
  expect((await server.deleteBucket(bucket.name)).error).not.toBeNull()
  expect((await server.emptyBucket(bucket.name)).error).toBeNull()
  await project.drain()
  expect((await tus.patch(url, 5, 'world')).status).toBe(404)
  expect(await stored()).toEqual([])
  expect((await server.deleteBucket(bucket.name)).error).toBeNull()
  expect((await tus.create(`${user.id}/a`, 10, {}, bucket.name)).status).toBe(404)
})

test('a user who is deleted takes along what has come', async () => {
  const { project, user, tus, counted, begun, stored } = await start()
  const url = await begun('a', 10)
  expect((await tus.patch(url, 0, 'hello')).status).toBe(204)
  await project.admin.delete(`/users/${user.id}`)
  expect((await tus.patch(url, 5, 'world')).status).toBe(401)
  expect((await tusOf(harness, project, null).patch(url, 5, 'world')).status).toBe(404)
  await project.drain()
  expect([await counted(), await stored()]).toEqual([0, []])
})
