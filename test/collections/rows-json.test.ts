import { Duplex } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { interceptorOf } from '#server/database/row_interceptor.ts'
import { wireProtocol } from '#server/database/wire_protocol.ts'
import { startCollections } from '#test/support/definitions.ts'

const { project, define, tried, insert } = await startCollections()
const user = await project.user()

const types = [
  ['a_text', 'text'],
  ['an_integer', 'integer'],
  ['a_bigint', 'bigint'],
  ['a_numeric', 'numeric'],
  ['a_double', 'double'],
  ['a_boolean', 'boolean'],
  ['a_uuid', 'uuid'],
  ['a_date', 'date'],
  ['a_time', 'timestamptz'],
  ['some_json', 'jsonb'],
  ['texts', 'text[]'],
  ['integers', 'integer[]'],
  ['bigints', 'bigint[]'],
  ['numerics', 'numeric[]'],
  ['booleans', 'boolean[]'],
  ['uuids', 'uuid[]'],
] as const
const columns = [...types.map(([name, type]) => ({ name, type })), { name: 'a_vector', type: 'vector', dimensions: 2 }]

/** What Postgres itself makes of the question: the envelope, without where the next page begins. */
const ofPostgres = async (kind: string, name: string, request: object) => {
  const [{ body }] = await tried('app_user', user.id, 'select body from internal.collection_run($1, $2, $3)', [
    kind,
    name,
    JSON.stringify(request),
  ])
  return body as string
}

const ofServer = async (name: string, request: object) => {
  const { text, status } = await user.post(`/client/collections/${name}/find`, request)
  expect(status).toBe(200)
  return text.replace(/,"next_cursor":(null|"[^"]*")\}$/, '}')
}

/** Where two texts part, which says more than both of them whole. */
const parting = (one: string, other: string) => {
  if (one === other) return null
  let at = 0
  while (one[at] === other[at]) at += 1
  return [one.slice(Math.max(0, at - 60), at + 20), other.slice(Math.max(0, at - 60), at + 20)]
}

const sameOf = async (name: string, request: object) => {
  const wanted = await ofPostgres('find', name, request)
  expect(parting(await ofServer(name, request), wanted)).toBeNull()
  for (const { id } of JSON.parse(wanted).data as { id: string }[]) {
    const { text } = await user.get(`/client/collections/${name}/${id}`)
    expect(parting(text, await ofPostgres('get', name, { id }))).toBeNull()
  }
}

/** Lets a table hold what only SQL by hand brings in: infinity, NaN, lists of lists. */
const unbound = (name: string) =>
  project.sql(`do $$ declare c text; begin
    for c in select conname from pg_constraint where conrelid = 'collections.${name}'::regclass and (conname like '%finite' or conname like '%flat') loop
      execute format('alter table collections.${name} drop constraint %I', c);
    end loop; end $$`)

describe('rows are written byte for byte as Postgres would write them', async () => {
  const name = await define({ columns })

  test('at the edges of every type', async () => {
    await unbound(name)
    const edges: Record<string, unknown>[] = [
      {},
      { a_text: '' },
      { a_text: Array.from({ length: 0x2ff }, (_, code) => String.fromCharCode(code + 1)).join('') },
      { a_text: `${'long '.repeat(40_000)}"\\\u2028\u{1f600}` },
      { a_text: '\u0001'.repeat(70_000) },
      { an_integer: -2147483648, a_bigint: '9007199254740991', a_numeric: '1e-300', a_double: 1e300 },
      {
        an_integer: 2147483647,
        a_bigint: '9007199254740992',
        a_numeric: '123456789012345678901234567890',
        a_double: 1e15,
      },
      { a_bigint: '-9007199254740991', a_numeric: '0.1', a_double: -0 },
      { a_bigint: '-9007199254740992', a_numeric: 'NaN', a_double: 'NaN' },
      { a_bigint: '9223372036854775807', a_numeric: 'Infinity', a_double: '-Infinity' },
      { a_boolean: true, a_uuid: 'FFFFFFFF-ffff-ffff-ffff-ffffffffffff', some_json: '{"a": [1, "\\u00e9\\n", null]}' },
      { a_boolean: false, a_uuid: '00000000-0000-0000-0000-000000000000', some_json: 'null' },
      { texts: '{}', integers: '{}', bigints: '{}', numerics: '{}', booleans: '{}', uuids: '{}' },
      {
        texts: '{NULL,"a\\"b","{}",""}',
        integers: '{1,NULL}',
        bigints: '{9007199254740993,1}',
        numerics: '{0.1,NULL}',
      },
      { texts: '{{a,b},{c,d}}', booleans: '{t,NULL,f}', a_vector: '{0.5,-1}' },
      ...['infinity', '-infinity', '0044-03-15 BC', '0001-01-01', '9999-12-31', '12345-06-07'].map((a_date) => ({
        a_date,
      })),
      ...[
        'infinity',
        '-infinity',
        '4713-01-01 00:00:00+00 BC',
        '0001-12-31 23:59:59.999999+00 BC',
        '0001-01-01 00:00:00+00',
        '0999-12-31 23:59:59.9995+00',
        '1582-10-10 00:00:00+00',
        '1899-12-31 23:59:59.999999+00',
        '1969-12-31 23:59:59.999999+00',
        '1999-12-31 23:59:59.999999+00',
        '2000-02-29 00:00:00.000001+00',
        '2100-02-28 23:59:59.123456+00',
        '2285-06-05 00:00:00.001999+00',
        '9999-12-31 23:59:59.999999+00',
        '10000-01-01 00:00:00+00',
        '294276-12-31 23:59:59.999999+00',
      ].map((a_time) => ({ a_time })),
    ]
    for (const row of edges) await insert(name, row, user)
    await sameOf(name, { limit: 1000 })
    await sameOf(name, { limit: 1000, offset: 2 })
    await sameOf(name, { limit: 3, order: [{ column: 'a_time', direction: 'desc' }] })
    await sameOf(name, { limit: 9, select: ['a_time', 'a_text', 'id'] })
    expect(await ofServer(name, { limit: 5, filter: { column: 'a_text', op: 'eq', value: 'nobody' } })).toBe(
      '{"data":[]}',
    )
  }, 180_000)

  test('at random', async () => {
    const random = await define({ columns })
    await unbound(random)
    const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { freq: 4 })
    const storable = fc.string({ unit: 'binary', maxLength: 80 }).filter((text) => !text.includes('\0'))
    const micros = fc.bigInt({ min: -210_000_000_000_000_000n, max: 9_000_000_000_000_000_000n })
    const near = fc.bigInt({ min: -63_000_000_000_000_000n, max: 10_000_000_000_000_000n })
    const row = fc.record({
      a_text: maybe(storable),
      an_integer: maybe(fc.integer({ min: -2147483648, max: 2147483647 })),
      a_bigint: maybe(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String)),
      a_double: maybe(fc.double({ noNaN: false })),
      a_boolean: maybe(fc.boolean()),
      a_uuid: maybe(fc.uuid()),
      a_time: maybe(fc.oneof(micros, near)),
      some_json: maybe(fc.json({ stringUnit: 'grapheme-ascii' }).filter((text) => !text.includes('\\u0000'))),
      texts: maybe(fc.array(maybe(storable), { maxLength: 4 })),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 30 }), async (rows) => {
        await project.sql(`truncate collections.${random} cascade`)
        for (const { a_time, ...values } of rows) {
          const { id } = await insert(random, values, user)
          // beyond what a JavaScript Date holds
          await project.sql(
            `update collections.${random} set a_time = '2000-01-01 00:00:00+00'::timestamptz
                + ($2::numeric / 86400000000)::int * interval '1 day' + ($2::numeric % 86400000000)::bigint * interval '1 microsecond' where id = $1`,
            [id, a_time === null ? null : String(a_time)],
          )
        }
        await sameOf(random, { limit: 50 })
      }),
      { numRuns: 12 },
    )
  }, 180_000)

  test('and what is included, with columns of the same name', async () => {
    const authors = await define({ columns: [{ name: 'title', type: 'text' }] })
    const books = await define({
      columns: [
        { name: 'title', type: 'text' },
        { name: 'author_id', type: 'uuid', references: { collection: authors } },
      ],
    })
    const author = await insert(authors, { title: 'a "name"' }, user)
    await insert(books, { title: 'one', author_id: author.id }, user)
    await insert(books, { title: 'two' }, user)
    await sameOf(books, { limit: 10, include: ['author'] })
    await sameOf(authors, { limit: 10, include: [books] })
  })
})

test('pages over times go on from the microsecond, whatever the time', async () => {
  const name = await define({ columns: [{ name: 'at', type: 'timestamptz' }] })
  await unbound(name)
  const times = [
    '-infinity',
    '0044-03-15 12:00:00.000007+00 BC',
    '2026-01-01 00:00:00.000001+00',
    '2026-01-01 00:00:00.000002+00',
  ]
  for (const at of [...times, '12345-06-07 00:00:00.123456+00', 'infinity', null]) await insert(name, { at }, user)
  for (const direction of ['asc', 'desc']) {
    const order = [{ column: 'at', direction }]
    const whole = (await user.post(`/client/collections/${name}/find`, { order })).data
    const walked: unknown[] = []
    for (let cursor: string | null | undefined = null; cursor !== undefined; ) {
      const page: any = await user.post(`/client/collections/${name}/find`, {
        order,
        limit: 1,
        ...(cursor ? { cursor } : {}),
      })
      walked.push(...page.data)
      cursor = page.body.next_cursor ?? undefined
    }
    expect(walked).toEqual(whole)
    expect(walked).toHaveLength(7)
  }
})

test('a column whose type somebody alters by hand is read as it is from then on', async () => {
  const name = await define({
    columns: [
      { name: 'n', type: 'integer' },
      { name: 'label', type: 'text' },
      { name: 'extra', type: 'jsonb' },
    ],
  })
  await insert(name, { n: 1, label: 'a', extra: '{"k": 1}' }, user)
  const row = await user.post(`/client/collections/${name}/find`, {})
  await project.sql(`alter table collections.${name} alter column n type bigint, alter column label type varchar(9)`)
  // the bounds of a row name it
  await expect(project.sql(`alter table collections.${name} alter column extra type json`)).rejects.toThrow(
    'cannot alter type of a column used in a trigger definition',
  )
  const after = await user.post(`/client/collections/${name}/find`, {})
  expect(after.status).toBe(200)
  expect(after.data).toEqual(row.data)
  expect((await user.get(`/client/collections/${name}/${row.data[0].id}`)).data).toEqual(row.data[0])
})

describe('the tap', () => {
  const message = (type: string, body: Buffer) => {
    const head = Buffer.alloc(5)
    head.write(type, 0, 'latin1')
    head.writeInt32BE(body.length + 4, 1)
    return Buffer.concat([head, body])
  }

  test('passes rows to the consumer and all other messages to pg, wherever the stream is split', () => {
    const kinds = fc.constantFrom('D', 'C', 'Z', 'N', '2')
    const frames = fc.array(fc.tuple(kinds, fc.uint8Array({ maxLength: 40 })), { maxLength: 20 })
    fc.assert(
      fc.property(frames, fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 60 }), (sent, cuts) => {
        const stream = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
        const passed: Buffer[] = []
        stream.on('data', (chunk: Buffer) => passed.push(chunk))
        const taken: string[] = []
        // after the first C rows are taken, until it is closed
        const close = interceptorOf(stream).open(() =>
          Buffer.concat(passed).includes('C\0\0')
            ? (bytes, start, end) => void taken.push(bytes.toString('hex', start, end))
            : undefined,
        )
        const whole = Buffer.concat(sent.map(([kind, body]) => message(kind, Buffer.from(body))))
        for (let at = 0, cut = 0; at < whole.length; cut += 1) {
          const size = cuts[cut % cuts.length] as number
          stream.emit('data', whole.subarray(at, at + size))
          at += size
        }
        close()
        stream.emit('data', message('D', Buffer.from('not yours')))
        let seen = Buffer.alloc(0)
        const wanted: string[] = []
        for (const [kind, body] of sent) {
          if (kind === 'D' && seen.includes('C\0\0')) wanted.push(Buffer.from(body).toString('hex'))
          else seen = Buffer.concat([seen, message(kind, Buffer.from(body))])
        }
        expect(taken).toEqual(wanted)
        expect(Buffer.concat(passed)).toEqual(Buffer.concat([seen, message('D', Buffer.from('not yours'))]))
      }),
    )
  })

  test('messages hold their lengths in bytes, not in letters', () => {
    const bytes = Buffer.from(wireProtocol.bind('s', ['é€😀', null, ''], [0, 1]), 'latin1')
    expect(bytes.readInt32BE(1)).toBe(bytes.length - 1)
    expect(bytes.toString('hex', 5)).toBe(
      `00${'7300'}00000003${'00000009'}${Buffer.from('é€😀').toString('hex')}${'ffffffff'}${'00000000'}0002${'0000'}${'0001'}`,
    )
  })
})
