import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { bodyOf, inUrl, knock, longEnough, often, queryOf, wordsOf } from '#test/support/hostile.ts'
import { text as asText, newBucket, storageOf, textOf } from '#test/support/supabase_storage.ts'

/** Files of others stay as they are, whatever is asked for. */
const harness = await startHarness()
const project = await harness.project()
await project.admin.patch('', { rest_enabled: true })
const user = await project.user()
const server = storageOf(harness, project)
const [kept, open] = [await newBucket(server), await newBucket(server, { public: true })]
for (const { server: files } of [kept, open])
  expect((await files.upload('deep/a.txt', 'kept', asText)).error).toBeNull()
const keys = { apikey: project.clientKey }
const member = { ...keys, authorization: `Bearer ${user.sessionToken}` }

const rowsOf = () =>
  project.sql(
    `select b::text as row from app.media_buckets b where b.name = any ($1)
      union all
     select m::text from app.media_assets m where m.key like any ($2) order by 1`,
    [
      [kept.name, open.name],
      [`bucket/${kept.name}/%`, `bucket/${open.name}/%`],
    ],
  )

const word = (...more: string[]) =>
  wordsOf(
    ...[
      'deep',
      'a.txt',
      'deep/a.txt',
      '.emptyFolderPlaceholder',
      'users',
      `user/${user.id}`,
      '0',
      '-1',
      'cover',
      'webp',
    ],
    ...[
      'bytes=0-1',
      'text/plain',
      '20MB',
      'name',
      'desc',
      'true',
      'object',
      'sign',
      'public',
      'authenticated',
      ...more,
    ],
  )
const reads = [
  ...['GET /object/:bucket/:key', 'GET /object/public/:bucket/:key', 'GET /object/authenticated/:bucket/:key'],
  ...[
    'GET /render/image/authenticated/:bucket/:key',
    'GET /render/image/public/:bucket/:key',
    'HEAD /object/:bucket/:key',
  ],
  ...['GET /object/info/:bucket/:key', 'GET /object/sign/:bucket/:key', 'POST /object/list/:bucket', 'GET /bucket'],
  ...[
    'POST /object/list-v2/:bucket',
    'POST /object/sign/:bucket',
    'POST /object/sign/:bucket/:key',
    'GET /bucket/:bucket',
  ],
]
const writes = [
  ...['POST /object/:bucket/:key', 'PUT /object/:bucket/:key', 'DELETE /object/:bucket', 'DELETE /object/:bucket/:key'],
  ...['POST /object/move', 'POST /object/copy', 'POST /object/upload/sign/:bucket/:key', 'PUT /bucket/:bucket'],
  ...['PUT /object/upload/sign/:bucket/:key', 'POST /bucket', 'DELETE /bucket/:bucket', 'POST /bucket/:bucket/empty'],
]
const rare = [
  'PUT /object/info/:bucket/:key',
  'HEAD /bucket/:bucket',
  'DELETE /object/:bucket/:key',
  'POST /upload/resumable',
]

const requestsOf = (buckets: readonly string[]) => {
  const some = word(...buckets)
  const bucket = fc.oneof({ weight: 4, arbitrary: fc.constantFrom('media', ...buckets) }, inUrl(some))
  const key = fc.oneof(
    fc.constantFrom('deep/a.txt', 'deep', 'x', `user/${user.id}/a.txt`),
    fc.array(inUrl(some), { maxLength: 4 }).map((parts) => parts.join('/')),
  )
  const of = (...ways: string[]) =>
    fc
      .tuple(fc.constantFrom(...ways), bucket, key)
      .map(([way, name, rest]) => way.replace(':bucket', name).replace(':key', rest))
  const route = fc.oneof(
    { weight: 5, arbitrary: of(...reads) },
    { weight: 5, arbitrary: of(...writes) },
    of(...rare),
    fc.tuple(fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'DELETE'), inUrl(some)).map((parts) => parts.join(' ')),
  )
  const place = { bucketId: bucket, sourceKey: key, destinationKey: key, destinationBucket: bucket }
  const listed = {
    prefix: key,
    limit: fc.nat(2000),
    offset: fc.nat(200),
    sortBy: fc.record({ column: some, order: some }),
  }
  const signed = {
    expiresIn: fc.nat(9999),
    paths: fc.array(key, { maxLength: 4 }),
    transform: fc.record({ width: some }),
  }
  const settings = {
    name: some,
    id: some,
    public: fc.boolean(),
    file_size_limit: some,
    allowed_mime_types: fc.array(some),
  }
  const headers = fc.record(
    {
      range: fc.constantFrom('bytes=0-1', 'bytes=9-', 'bytes=-1', 'bytes=1-0', 'bytes=0-0,2-3', 'lines=1'),
      'x-upsert': fc.constantFrom('true', 'false', 'x'),
      'x-metadata': fc.oneof(fc.base64String(), fc.constantFrom('e30=', 'bnVsbA==', 'W10=', 'eyJhIjoiXHUwMDAwIn0=')),
      'if-none-match': fc.constantFrom('*', '"x"', 'W/""', ','),
      'cache-control': fc.constantFrom('max-age=0', '-1', 'x'),
    },
    { requiredKeys: [] },
  )
  return fc.record({
    route,
    root: fc.constantFrom('/storage/v1', '/storage/v1', `/p/${project.id}/storage/v1`),
    query: queryOf(['token', 'download', 'width', 'height', 'resize', 'quality', 'format', 'limit', 'versionId'], some),
    body: fc.oneof(
      ...[place, listed, { ...listed, cursor: fc.base64String(), with_delimiter: fc.boolean() }].map((one) =>
        bodyOf(one, some),
      ),
      ...[signed, settings, { prefixes: fc.array(key, { maxLength: 4 }) }].map((one) => bodyOf(one, some)),
    ),
    headers,
    type: fc.constantFrom(
      'application/json',
      'text/plain',
      'multipart/form-data; boundary=x',
      'multipart/form-data',
      'x',
    ),
  })
}

test(
  '/storage/v1, without a session and as a user',
  async () => {
    const before = await rowsOf()
    expect(before).toHaveLength(4)
    const who = fc.constantFrom<Record<string, string>>(keys, member, member, {}, { authorization: 'Bearer x' })
    const sent = fc.tuple(requestsOf([kept.name, open.name]), who)
    await often(sent, async ([{ route, root, query, body, headers, type }, credentials]) => {
      const [method = '', path = ''] = route.split(' ')
      const all = { ...headers, ...credentials, 'content-type': type }
      await knock(harness.url, { method, path: `${root}${path}?${query}`, headers: all, body })
    })
    expect(await rowsOf()).toEqual(before)
    for (const { server: files } of [kept, open]) expect(await textOf(files, 'deep/a.txt')).toBe('kept')
  },
  longEnough,
)

test('a number is no metadata of a file, however large', async () => {
  const sent = async (metadata: string) => {
    const headers = { ...member, 'content-type': 'text/plain', 'x-metadata': Buffer.from(metadata).toString('base64') }
    const path = `/storage/v1/object/media/user/${user.id}/${randomUUID()}`
    return (await knock(harness.url, { method: 'POST', path, headers, body: 'a' })).status
  }
  for (const metadata of ['1e400', '12345678901234567890', '1', 'null', '[]'])
    expect(await sent(metadata), metadata).toBe(400)
  expect(await sent('{"a":1e400}')).toBe(200)
})

test(
  '/storage/v1, with the server key: other buckets stay',
  async () => {
    const before = await rowsOf()
    await server.createBucket('scratch', { public: true })
    await often(requestsOf(['scratch']), async ({ route, root, query, body, headers, type }) => {
      const [method = '', path = ''] = route.split(' ')
      const all = { ...headers, apikey: project.serverKey, 'content-type': type }
      await knock(harness.url, { method, path: `${root}${path}?${query}`, headers: all, body })
    })
    expect(await rowsOf()).toEqual(before)
  },
  longEnough,
)
