import fc from 'fast-check'
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { inUrl, knock, longEnough, often, wordsOf } from '#test/support/hostile.ts'
import { text as asText, newBucket, storageOf, textOf } from '#test/support/supabase_storage.ts'

/** Resumable uploads of others, and of files that are there. */
const harness = await startHarness()
const project = await harness.project()
await project.admin.patch('', { rest_enabled: true })
const user = await project.user()
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
const known: string[] = []
const sent = fc.record({
  method: fc.constantFrom('POST', 'PATCH', 'HEAD', 'DELETE', 'GET', 'PUT'),
  id: fc.oneof(place, fc.base64String(), fc.nat(50), inUrl(word)),
  length: fc.oneof({ weight: 4, arbitrary: fc.nat(20).map(String) }, fc.constantFrom('x', '-1', '1e3', '9'.repeat(15))),
  offset: fc.oneof({ weight: 4, arbitrary: fc.nat(8).map(String) }, fc.constantFrom('x', '-1', '1e3', '9'.repeat(15))),
  names: fc.array(
    fc.tuple(fc.constantFrom('bucketName', 'objectName', 'contentType', 'metadata', '__proto__', 'cacheControl'), word),
    { maxLength: 5 },
  ),
  key: fc.oneof(fc.constant(`user/${user.id}/`), fc.constant('')),
  body: fc.string({ maxLength: 12 }),
  who: fc.constantFrom<Record<string, string>>(
    { apikey: project.clientKey, authorization: `Bearer ${user.sessionToken}` },
    { apikey: project.clientKey, authorization: `Bearer ${user.sessionToken}` },
    { apikey: project.clientKey },
  ),
  more: fc.record(
    {
      'tus-resumable': fc.constantFrom('1.0.0', '1.0.0', '1.0.0', '0.2', ''),
      'content-type': fc.constantFrom(
        'application/offset+octet-stream',
        'application/offset+octet-stream',
        'text/plain',
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
    await often(sent, async ({ method, id, length, offset, names, key, body, who, more }) => {
      const own =
        key === ''
          ? []
          : ([
              ['bucketName', 'media'],
              ['objectName', key + length],
              ['contentType', 'text/plain'],
            ] as const)
      const metadata = [...own, ...names].map(([name, text]) => `${name} ${base64(text)}`).join(',')
      const at = typeof id === 'number' ? (known[id % Math.max(1, known.length)] ?? 'x') : id
      const path = method === 'POST' ? '/storage/v1/upload/resumable' : `/storage/v1/upload/resumable/${at}`
      const headers = { ...who, ...more, 'upload-length': length, 'upload-offset': offset, 'upload-metadata': metadata }
      const { location } = await knock(harness.url, { method, path, headers, body })
      if (location !== null) {
        known.push(new URL(location).pathname.split('/').at(-1) ?? '')
        if (known.length > 50) known.shift()
      }
    })
    expect(await rowsOf()).toEqual(before)
    expect(await textOf(bucket.server, 'a.txt')).toBe('kept')
    expect(known.length).toBeGreaterThan(0)
  },
  longEnough,
)
