import fc from 'fast-check'
import pg from 'pg'
import { afterAll, describe, expect, inject, test } from 'vitest'
import { checkJson, jsonSize, mostBytes, parseJson } from '#server/http/json.ts'
import { exactJson, isExactNumber, lostNumber, numberText } from '#server/json/lossless_json.ts'
import { scanJson } from '#server/json/scan.ts'

const client = new pg.Client({ connectionString: inject('dsn') })
await client.connect()
afterAll(() => client.end())

const scan = (text: string) => scanJson(Buffer.from(text))

const isJson = (text: string) => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Numbers as JSON writes them, in every form: long, short, with and without point and exponent. */
const digits = (most: number) => fc.stringMatching(new RegExp(`^[0-9]{1,${most}}$`))
const numbers = fc
  .tuple(
    fc.constantFrom('', '-'),
    fc.oneof(
      fc.constant('0'),
      digits(30).map((text) => text.replace(/^0+(?=.)/, '')),
    ),
    fc.oneof(
      fc.constant(''),
      digits(30).map((text) => `.${text}`),
    ),
    fc.oneof(
      fc.constant(''),
      fc.tuple(fc.constantFrom('e', 'E', 'e-', 'E+'), fc.integer({ min: 0, max: 980 })).map((part) => part.join('')),
    ),
  )
  .map((parts) => parts.join(''))

/** JSON texts with white space and escapes at random places. */
const { text: texts } = fc.letrec<{ text: string }>((tie) => ({
  text: fc.oneof(
    { depthSize: 'small' },
    numbers,
    fc.constantFrom(
      'true',
      'false',
      'null',
      '""',
      '"\\u00e9\\n\\"\\/"',
      '"\\ud83d\\ude00"',
      '"0190a1b2-0000"',
      ' 1\t',
      '\n"x"\r ',
    ),
    fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text.replaceAll('\0', ''))),
    fc.array(tie('text'), { maxLength: 5 }).map((items) => `[${items.join(' ,')}]`),
    fc
      .array(fc.tuple(fc.string(), tie('text')), { maxLength: 5 })
      .map((items) => `{${items.map(([key, item]) => `${JSON.stringify(key)} :${item}`).join()}}`),
  ),
}))

describe('the scanner and JSON.parse', () => {
  test('agree on texts that are JSON', () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect([scan(text).problem, isJson(text)]).toEqual([null, true])
      }),
      { numRuns: 3000 },
    )
  })

  test('agree on texts with a mistake', () => {
    const letters = fc.constantFrom(...'{}[]",:\\/-+.eE0123456789truefalsn u\t\n\u0001\u00e9x')
    const mutated = fc.tuple(texts, fc.nat(), fc.nat(3), fc.array(letters, { maxLength: 3 }))
    fc.assert(
      fc.property(mutated, ([text, place, gone, added]) => {
        const at = place % (text.length + 1)
        const broken = text.slice(0, at) + added.join('') + text.slice(at + gone)
        const { problem } = scan(broken)
        if (problem === null || problem === 'syntax')
          expect([problem === null, broken]).toEqual([isJson(broken), broken])
        // a limit that JSON does not have is a finding only in JSON: what comes after it is not read
        else expect(['character', 'number']).toContain(problem)
      }),
      { numRuns: 10_000 },
    )
  })

  test.each([
    ...[
      '',
      ' ',
      '{',
      '[',
      '[1,]',
      '{"a":1,}',
      '{"a"}',
      '{"a":}',
      '{,}',
      '[,]',
      '01',
      '-01',
      '-',
      '1.',
      '.5',
      '1e',
      '1e+',
      '+1',
    ],
    ...[
      'tru',
      'truex',
      'nul',
      '"',
      '"\\"',
      '"\\x"',
      '"\\u12"',
      '"\\u12g4"',
      '"a\nb"',
      '1 2',
      '[1 2]',
      '{"a" 1}',
      '{1:2}',
      ']',
      '[}',
      '{]',
      '\ufeff1',
    ],
  ])('%j is no JSON', (text) => {
    expect([scan(text).problem, isJson(text)]).toEqual(['syntax', false])
  })

  test.each([
    ['"\\u0000"', 'character'],
    ['{"\\u0000":1}', 'character'],
    ['"\\ud800"', 'character'],
    ['"\\udc00\\ud800"', 'character'],
    ['"\\ud83d\\\\\\ude00"', 'character'],
    ['"\\ud83d\\ude00"', null],
    ['"\\\\u0000"', null],
    ['1e999', null],
    ['1e1000', 'number'],
    ['1e-1000', null],
    ['1e-1001', 'number'],
    ['9'.repeat(1001), 'number'],
    [`0.${'0'.repeat(999)}1`, null],
    [`0.${'0'.repeat(1000)}1`, 'number'],
    ['0e99999999999999999999', 'number'],
    ['0e9999', null],
    ['"1e131071"', null],
    [`${'['.repeat(200)}${']'.repeat(200)}`, null],
    [`${'['.repeat(201)}${']'.repeat(201)}`, 'depth'],
  ] as const)('%.40s: %s', (text, problem) => {
    expect(scanJson(Buffer.from(text), 200).problem).toBe(problem)
  })
})

describe('what numbers expand to', () => {
  test('is what Postgres writes', async () => {
    const sample = fc.sample(numbers, 2000)
    const { rows } = await client.query(
      `select octet_length(replace(jsonb_agg(n::jsonb)::text, ' ', '')) as whole, array_agg(octet_length(n::jsonb::text)) as each
         from unnest($1::text[]) n`,
      [sample],
    )
    const gained = (text: string) => scan(text).gained
    for (const [index, text] of sample.entries())
      expect([text, Math.max(0, rows[0].each[index] - text.length)]).toEqual([text, gained(text)])
    // what numbers lose, such as zeros in front of an exponent, is not counted
    expect(rows[0].whole).toBeLessThanOrEqual(
      jsonSize(JSON.parse(`[${sample.map((text) => `"${text}"`).join()}]`)).bytes,
    )
    const list = `[${sample.join()}]`
    expect(gained(list)).toBe(sample.reduce((sum, text) => sum + gained(text), 0))
  })

  test.each([
    ['1e999', 995],
    ['-1e999', 995],
    ['1.5e-999', 1002 - 8],
    ['1E5', 3],
    ['0e999', 0],
    ['0e-50', 52 - 5],
    ['12345678901234567890', 0],
    ['"1e999"', 995],
    ['"\\u0031e99\\u0039"', 995],
    ['"1e999 "', 0],
    ['"1e1000"', 0],
    ['"x1e999"', 0],
    ['{"1e999":1}', 0],
  ])('%s gains %i bytes', (text, gained) => {
    expect(scan(text).gained).toBe(gained)
  })

  test('is bounded by the size of a body, and the scan ends where it is passed', () => {
    const list = (item: string, count: number) => Buffer.from(`[${Array(count).fill(item).join()}]`)
    expect(checkJson(list('1e999', 1000)).kind).toBe('checked')
    for (const item of ['1e999', '"1e999"', '-1.5E-997', '"\\u0031e999"'])
      expect(checkJson(list(item, 1100)), item).toMatchObject({
        kind: 'broken',
        reason: expect.stringContaining('1 MB'),
      })
    // a body without such numbers may have all of it
    expect(checkJson(list('1', mostBytes / 2 - 1)).kind).toBe('checked')
    expect(jsonSize(exactJson('[1e999]'))).toEqual({ characters: 1002, bytes: 1002 })
  })
})

describe('numbers that a double cannot hold', () => {
  const canonical = async (list: readonly string[]) =>
    (
      await client.query(
        'select array_agg(trim_scale(n::numeric)::text order by i) as all from unnest($1::text[]) with ordinality as t (n, i)',
        [list],
      )
    ).rows[0].all

  test('pass through parse and stringify with their value', async () => {
    const sample = fc.sample(numbers, 2000)
    const parsed = parseJson(Buffer.from(`{"a":[${sample.join()}]}`))
    if (parsed.kind === 'broken') throw new Error(parsed.reason)
    const { a } = parsed.value as { a: unknown[] }
    expect(await canonical(a.map((item) => JSON.stringify(item)))).toEqual(await canonical(sample))
    // and only those stand as their text
    for (const [index, item] of a.entries()) if (typeof item === 'number') expect(Number(sample[index])).toBe(item)
  })

  test('every other value is what JSON.parse makes of it', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const plain = (value: unknown): unknown => {
          if (isExactNumber(value)) return Number(numberText(value))
          if (Array.isArray(value)) return value.map(plain)
          if (typeof value !== 'object' || value === null) return value
          return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]))
        }
        const parsed = parseJson(Buffer.from(`[12345678901234567890,${text}]`))
        if (parsed.kind === 'value')
          expect(plain(parsed.value)).toEqual(plain(JSON.parse(`[12345678901234567890,${text}]`)))
      }),
      { numRuns: 1000 },
    )
  })

  test('keys and strings are left alone, __proto__ is a key like any other', () => {
    const text =
      '{"__proto__":1e400,"a":{"__proto__":{"b":12345678901234567890}},"12345678901234567890":"12345678901234567890"}'
    const parsed = parseJson(Buffer.from(text))
    expect(parsed.kind === 'value' && JSON.stringify(parsed.value)).toBe(text)
    expect(JSON.stringify(exactJson(text.replace('1e400', '"1e400"')))).toContain('"b":12345678901234567890')
  })

  test('a key with escapes is no key that an earlier text had', () => {
    const keysOf = (text: string) => {
      const parsed = parseJson(Buffer.from(text))
      return parsed.kind === 'value' ? Object.keys(parsed.value as object) : parsed
    }
    const plain = fc.array(fc.string({ unit: 'grapheme', maxLength: 3 }), { minLength: 1, maxLength: 4 })
    // each with a sibling that differs from it in what follows a backslash
    for (const [first, second] of [
      [
        { k: 1, 'k\\': 2 },
        { k: 1, 'k"': 2 },
      ],
      [
        { k: 1, 'caf\\': 2 },
        { k: 1, café: 12345678901234567890n },
      ],
    ] as const) {
      const spelled = (value: object) =>
        JSON.stringify(value, (_, item) => (typeof item === 'bigint' ? 0 : item)).replaceAll('é', '\\u00e9')
      for (let round = 0; round < 5; round += 1) {
        expect(keysOf(spelled(first))).toEqual(Object.keys(first))
        expect(keysOf(spelled(second))).toEqual(Object.keys(second))
        expect(Object.keys(exactJson(spelled(second)) as object)).toEqual(Object.keys(second))
      }
    }
    fc.assert(
      fc.property(plain, (keys) => {
        const object = Object.fromEntries(
          keys.filter((key) => !key.includes('\0')).map((key, n) => [key, [n, { [key]: 1e300 }]]),
        )
        const parsed = parseJson(Buffer.from(JSON.stringify(object)))
        if (parsed.kind === 'value') expect(parsed.value).toEqual(object)
      }),
    )
  })

  test('a schema that took one for an object is found', () => {
    const sent = exactJson('{"a":{"b":[1,1e400]},"c":1e400}') as Record<string, unknown>
    expect(lostNumber(sent, { ...sent })).toBeNull()
    expect(lostNumber(sent, { a: sent['a'] })).toBeNull()
    expect(lostNumber(sent, { a: { b: [1, { rawJSON: '1e400' }] } })).toEqual(['a', 'b', '1'])
  })

  test('a number that a schema left out is not lost, whatever its name', () => {
    for (const name of ['other', 'constructor', 'toString', '__proto__'])
      expect(lostNumber(exactJson(`{"${name}":1e400}`), {}), name).toBeNull()
  })
})

test('UTF-8', () => {
  for (const bytes of [
    [0x22, 0xff, 0x22],
    [0x22, 0xc3, 0x22],
    [0x22, 0xed, 0xa0, 0x80, 0x22],
    [0x22, 0xc0, 0x80, 0x22],
  ])
    expect(checkJson(Buffer.from(bytes))).toEqual({
      kind: 'broken',
      problem: 'syntax',
      reason: 'The body is not valid UTF-8.',
    })
  expect(parseJson(Buffer.from('"é😀"'))).toEqual({ kind: 'value', value: 'é😀' })
})
