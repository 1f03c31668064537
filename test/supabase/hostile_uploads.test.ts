import fc from 'fast-check'
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { inUrl, knock, longEnough, often, rounds, wordsOf } from '#test/support/hostile.ts'
import { text as asText, newBucket, storageOf, textOf } from '#test/support/supabase_storage.ts'

/** Resumable uploads of others, and of files that are there. */
const harness = await startHarness()
const project = await harness.project()
await project.admin.patch('', { rest_enabled: true })
const [user, other] = [await project.user(), await project.user()]
const member = { apikey: project.clientKey, authorization: `Bearer ${user.sessionToken}` }
const bucket = await newBucket(storageOf(harness, project), { public: true })
expect((await bucket.server.upload('a.txt', 'kept', asText)).error).toBeNull()
const rowsOf = () => project.sql(`select m::text as row from app.media_assets m where m.key like 'bucket/%'`)
const [kept] = await project.sql(
  `select m.id, m.object_version as object from app.media_assets m where m.key like 'bucket/%'`,
)

const word = wordsOf('a.txt', 'text/plain', 'media', bucket.name, `user/${user.id}/a.txt`, '1.0.0', '4', '0', '-1')
const base64 = (text: string) => Buffer.from(text).toString('base64')
const place = fc
  .record({
    asset: fc.oneof({ weight: 4, arbitrary: fc.constant(kept.id) }, fc.uuid(), word),
    version: fc.oneof(fc.constantFrom(kept.object, '1', 'x'), word),
    bucket: fc.oneof(fc.constant(bucket.name), word),
    key: fc.oneof(fc.constant('a.txt'), word),
    size: fc.oneof(fc.constantFrom(1, 4, 1e9), fc.nat(20)),
  })
  .map((value) => Buffer.from(JSON.stringify(value)).toString('base64url'))
/** Uploads that are under way, and up to where their bytes have come. */
const known: { readonly id: string; to: number }[] = []
const sent = fc.record({
  method: fc.constantFrom('POST', 'POST', 'POST', 'PATCH', 'PATCH', 'PATCH', 'PATCH', 'HEAD', 'DELETE', 'GET', 'PUT'),
  id: fc.oneof({ weight: 4, arbitrary: fc.nat(50) }, place, fc.base64String(), inUrl(word)),
  length: fc.oneof({ weight: 4, arbitrary: fc.nat(20).map(String) }, fc.constantFrom('x', '-1', '1e3', '9'.repeat(15))),
  offset: fc.oneof(
    { weight: 4, arbitrary: fc.constant('right') },
    fc.nat(8).map(String),
    fc.constantFrom('x', '-1', '1e3', '9'.repeat(15)),
  ),
  names: fc.oneof(
    { weight: 2, arbitrary: fc.constant([]) },
    fc.array(
      fc.tuple(
        fc.constantFrom('bucketName', 'objectName', 'contentType', 'metadata', '__proto__', 'cacheControl'),
        word,
      ),
      { maxLength: 5 },
    ),
  ),
  key: fc.oneof(
    fc.uuid().map((name) => `user/${user.id}/${name}`),
    fc.nat(20).map((name) => `user/${user.id}/${name}`),
    fc.constant(''),
  ),
  body: fc.string({ maxLength: 12 }),
  who: fc.oneof(
    { weight: 6, arbitrary: fc.constant<Record<string, string>>(member) },
    fc.constantFrom<Record<string, string>>(
      { apikey: project.clientKey, authorization: `Bearer ${other.sessionToken}` },
      { apikey: project.clientKey },
    ),
  ),
  more: fc.record(
    {
      'tus-resumable': fc.oneof({ weight: 9, arbitrary: fc.constant('1.0.0') }, fc.constantFrom('0.2', '')),
      'content-type': fc.oneof(
        { weight: 9, arbitrary: fc.constant('application/offset+octet-stream') },
        fc.constant('text/plain'),
      ),
      'x-upsert': fc.constantFrom('true', 'false'),
    },
    { requiredKeys: ['tus-resumable', 'content-type'] },
  ),
})
test(
  '/storage/v1/upload/resumable',
  async () => {
    const before = await rowsOf()
    let taken = 0
    await often(sent, async ({ method, id, length, offset, names, key, body, who, more }) => {
      const own =
        key === ''
          ? []
          : ([
              ['bucketName', 'media'],
              ['objectName', key],
              ['contentType', 'text/plain'],
            ] as const)
      const metadata = [...own, ...names].map(([name, text]) => `${name} ${base64(text)}`).join(',')
      const one = typeof id === 'number' ? known[id % Math.max(1, known.length)] : undefined
      const path = `/storage/v1/upload/resumable${method === 'POST' ? '' : `/${one?.id ?? id}`}`
      const at = offset === 'right' ? String(one?.to ?? 0) : offset
      const headers = { ...who, ...more, 'upload-length': length, 'upload-offset': at, 'upload-metadata': metadata }
      const { status, location } = await knock(harness.url, { method, path, headers, body })
      if (one && who !== member) expect(status, `${method} ${path}: an upload of another user`).toBeGreaterThan(399)
      if (location !== null) {
        known.push({ id: new URL(location).pathname.split('/').at(-1) ?? '', to: Buffer.byteLength(body) })
        // a user has a hundred under way
        const former = known.length > 50 ? known.shift() : undefined
        const gone = { method: 'DELETE', path: `/storage/v1/upload/resumable/${former?.id}` }
        if (former) await knock(harness.url, { ...gone, headers: { ...member, 'tus-resumable': '1.0.0' } })
      } else if (one && method === 'DELETE' && status === 204) {
        known.splice(known.indexOf(one), 1)
      } else if (one && method === 'PATCH' && status === 204) {
        one.to += Buffer.byteLength(body)
        taken += 1
      }
    })
    expect(await rowsOf()).toEqual(before)
    expect(await textOf(bucket.server, 'a.txt')).toBe('kept')
    expect(known.length).toBeGreaterThan(0)
    expect(taken).toBeGreaterThan(rounds / 100)
  },
  longEnough,
)
