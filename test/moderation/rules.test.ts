import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { startModeration } from '#test/support/moderation.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'

/** Definitions of rules: their validation, their test on a text, their simulation on past texts. */
const { harness, project, admin, define, word, report } = await startModeration()

describe('rules', () => {
  test.each([
    ['keyword', {}, 'config.words'],
    ['keyword', { words: [] }, 'config.words'],
    ['keyword', { words: 'a' }, 'config.words'],
    ['keyword', { words: [1] }, 'config.words'],
    ['keyword', { words: [''] }, 'config.words'],
    ['keyword', { words: ['a'.repeat(101)] }, 'config.words'],
    ['keyword', { words: Array(1001).fill('a') }, 'config.words'],
    ['keyword', { words: ['!!'] }, 'config.words'],
    ['keyword', { words: ['a'], match: 'prefix' }, 'config.match'],
    ['keyword', { words: ['a'], applies_to: ['nothing'] }, 'config.applies_to'],
    ['keyword', { words: ['a'], applies_to: 'user' }, 'config.applies_to'],
    ['keyword', { words: ['a'], action: 'ban' }, 'config.action'],
    ['keyword', { words: ['a'], more: 'x'.repeat(65_536) }, 'config'],
    ['regex', {}, 'config.pattern'],
    ['regex', { pattern: 1 }, 'config.pattern'],
    ['regex', { pattern: '(a)\\1' }, 'config.pattern'],
    ['report_threshold', { count: 0, window_hours: 1 }, 'config.count'],
    ['report_threshold', { count: 1.5, window_hours: 1 }, 'config.count'],
    ['report_threshold', { count: 1 }, 'config.window_hours'],
    ['report_threshold', { count: 1, window_hours: 1, action: 'block' }, 'config.action'],
    ['rate', { max: '1', window_seconds: 60 }, 'config.max'],
    ['rate', { max: 1, window_seconds: 1e12 }, 'config.window_seconds'],
    ['link', { allow_domains: [1] }, 'config.allow_domains'],
    ['new_account', { max_age_hours: -1 }, 'config.max_age_hours'],
  ])('%s %j is refused', async (rule_type, config, field) => {
    const made = await admin.post('/moderation/rules', { name: 'Rule', rule_type, config })
    expectRefusal(made, 400, 'INVALID_INPUT', field)
    const rule = await word(['fine'])
    expectRefusal(await admin.patch(`/moderation/rules/${rule.id}`, { rule_type, config }), 400, 'INVALID_INPUT', field)
  })

  test('keep their configuration as it was sent, and default to every text and the queue', async () => {
    const config = { words: ['Casino '], of_ours: { n: 1 } }
    const rule = await define('keyword', config)
    expect(rule).toEqual({
      id: expect.any(String),
      name: 'Rule',
      rule_type: 'keyword',
      config,
      is_active: true,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    })
    const [stored] = await project.sql('select applies_to, action, words from app.moderation_rules where id = $1', [
      rule.id,
    ])
    const kinds = 'message review feed_entry collection_row content display_name group_name ai_input ai_output'
    expect([stored.applies_to.join(' '), stored.action, stored.words]).toEqual([kinds, 'queue', [' casino ']])
  })

  test.each([
    ['keyword', { words: ['bad idea', 'Ärger'] }, 'A BAD,  idea!', ['bad idea']],
    ['keyword', { words: ['ärger'] }, 'ÄRGER', ['ärger']],
    ['keyword', { words: ['ass'] }, 'class', []],
    ['keyword', { words: ['ass'], match: 'substring' }, 'CLASS', ['ass']],
    ['keyword', { words: ['casino'] }, 'ｃａｓｉｎｏ', ['casino']],
    ['keyword', { words: ['%', '_'], match: 'substring' }, 'nothing', []],
    ['regex', { pattern: '(?i)buy\\s+now' }, 'BUY  now', ['(?i)buy\\s+now']],
    ['regex', { pattern: 'buy' }, 'sell', []],
    ['link', {}, 'see HTTPS://Evil.example/x?y', ['evil.example']],
    ['link', { allow_domains: ['ours.com'] }, 'https://ours.com and http://a.ours.com:8080/', []],
    ['link', { allow_domains: ['ours.com'] }, 'https://notours.com', ['notours.com']],
    ['link', { allow_domains: ['ours.com'] }, 'https://ours.com@evil.com/', ['evil.com']],
    ['link', { allow_domains: ['ours.com'] }, 'https:\\\\evil.com\\ours.com', ['evil.com']],
    ['link', {}, 'at www.evil.com.', ['www.evil.com']],
    ['link', {}, 'go to evil.com now', ['evil.com']],
    ['link', {}, 'e.g. this, v1.2 and a.b', []],
    ['link', {}, 'mail ada@evil.com', []],
    ...[
      'ca\u200bsino',
      'ca\u00adsino',
      'ca\u2060sino',
      'ca\ufe0fsino',
      'ca\u034fsino',
      'casino\u0301',
      'c\u0336a\u0336s\u0336i\u0336n\u0336o\u0336',
      'ca\u{e0073}sino',
      'ca\u0001sino',
    ].map((text): [string, object, string, string[]] => ['keyword', { words: ['casino'] }, text, ['casino']]),
    ['keyword', { words: ['badword'], match: 'substring' }, 'xbad\u200bwo\u0301rdx', ['badword']],
    // letters with marks are letters of their own, whichever way they are written
    ['keyword', { words: ['ano'] }, 'año', []],
    ['keyword', { words: ['año'] }, 'ANO\u0303 an\u0303o', ['año']],
    ['keyword', { words: ['an\u0303o'] }, 'el año', ['año']],
    ['keyword', { words: ['ca\u200bsino'] }, 'casino', ['casino']],
    ['regex', { pattern: '^cas' }, 'c\u200bas', ['^cas']],
    ['regex', { pattern: '^c.as' }, 'c\u200bas', ['^c.as']],
    ...(
      [
        ['//evil.com', 'evil.com'],
        ['[x](//evil.com)', 'evil.com'],
        ['ftp://evil.com', 'evil.com'],
        ['https:/evil.com', 'evil.com'],
        ['http:evil.com', 'evil.com'],
        ['hxxp://evil.com', 'evil.com'],
        ['myapp://evil', 'evil'],
        ['mailto:a@evil.com', 'evil.com'],
        ['mailto:a@good.com?cc=b@evil.com', 'evil.com'],
        ['mailto:a@evil.com,b@good.com', 'evil.com'],
        ['//evil\u3002com', 'evil.com'],
        ['https://good.com\u200b.evil.com', 'good.com.evil.com'],
        ['\\\\evil.com\\share', 'evil.com'],
      ] as const
    ).map(([text, host]): [string, object, string, string[]] => [
      'link',
      { allow_domains: ['good.com'] },
      text,
      [host],
    ]),
    ['link', { allow_domains: ['good.com'] }, '//good.com ftp://a.good.com mailto:a@good.com, and ca.', []],
    ['link', {}, '// a remark, 1//2, C:/Users and either/or', []],
    ['rate', { max: 1, window_seconds: 60 }, 'text', []],
    ['new_account', { max_age_hours: 1 }, 'text', []],
    ['report_threshold', { count: 1, window_hours: 1 }, 'text', []],
  ])('%s %j finds in %j: %j', async (rule_type, config, text, found) => {
    const rule = await define(rule_type, config)
    const tested = await admin.post(`/moderation/rules/${rule.id}/test`, { text })
    expect(tested.data, tested.text).toMatchObject({ matches: found.length > 0, found })
  })

  test('are tested and simulated within bounds, and of this project', async () => {
    const rule = await word(['x'])
    const test = `/moderation/rules/${rule.id}/test`
    expectInvalid(await admin.post(test, { text: '' }), 'text')
    expectInvalid(await admin.post(test, { text: 'x'.repeat(10_001) }), 'text')
    expectRefusal(await admin.post(test, []), 400, 'INVALID_BODY')
    expectRefusal(await admin.post(`/moderation/rules/${randomUUID()}/test`, { text: 'x' }), 404, 'NOT_FOUND')
    expectRefusal(await admin.post('/moderation/rules/none/test', { text: 'x' }), 400, 'INVALID_ID')
    for (const days of [0, 91, 1.5, 'x']) {
      expectInvalid(await admin.post(`/moderation/rules/${rule.id}/simulate`, { days }), 'days')
    }
    expectRefusal(await admin.post(`/moderation/rules/${rule.id}/simulate`, []), 400, 'INVALID_BODY')
    expectRefusal(await admin.post(`/moderation/rules/${randomUUID()}/simulate`, {}), 404, 'NOT_FOUND')
    expectRefusal(await admin.post('/moderation/rules/none/simulate', {}), 400, 'INVALID_ID')
    const other = await harness.project()
    expectRefusal(await other.admin.post(test, { text: 'x' }), 404, 'NOT_FOUND')
  })
})

test('characters that nobody sees change no verdict', async () => {
  const rules = [
    await word(['casino', 'bad idea', 'год', 'año']),
    await word(['hide', 'é'], { match: 'substring' }),
    await define('link', { allow_domains: ['good.com'] }),
  ]
  const piece = fc.constantFrom(
    ...['casino', 'bad', 'idea', ' ', ', ', 'hideme', 'год', 'año', 'an\u0303o', 'café', 'x', '. ', '\n'],
    ...['https://evil.com', 'good.com', '//evil.com', 'mailto:a@evil.com', 'www.good.com/', 'ｃasino', '!'],
  )
  const unseen = fc.constantFrom(
    ...[
      '\u200b',
      '\u200d',
      '\u2060',
      '\u00ad',
      '\ufeff',
      '\ufe0f',
      '\u034f',
      '\u061c',
      '\u180e',
      '\u202e',
      '\u3164',
      '\ufff9',
    ],
    ...['\u{e0061}', '\u{1d173}', '\u0008', '\u200b'.repeat(50)],
  )
  const sample = fc.sample(
    fc.tuple(
      fc.array(piece, { minLength: 1, maxLength: 6 }).map((pieces) => pieces.join('')),
      fc.array(fc.tuple(fc.nat(60), unseen), { minLength: 1, maxLength: 6 }),
    ),
    1500,
  )
  const pairs = sample.map(([text, insertions]) => {
    const letters = [...text]
    for (const [at, one] of insertions) letters.splice(Math.min(at, letters.length), 0, one)
    return { text, with_unseen: letters.join('') }
  })
  const differing = await project.sql(
    `select p.text, p.with_unseen, a.found as plain, b.found as hidden
       from app.moderation_rules r, json_to_recordset($2) as p (text text, with_unseen text),
            internal.moderation_found(r, p.text) a (found), internal.moderation_found(r, p.with_unseen) b (found)
      where r.id = any ($1) and a.found is distinct from b.found`,
    [rules.map(({ id }) => id), JSON.stringify(pairs)],
  )
  expect(differing).toEqual([])
})

test('a long text is read past what nobody sees, and within its time', async () => {
  const rule = await word(['casino'], { action: 'block', applies_to: ['display_name'] })
  expect(rule.id).toBeTruthy()
  const texts = [
    '\u200b'.repeat(20_000),
    '//('.repeat(3400),
    'a.'.repeat(5120),
    'a:'.repeat(5120),
    'mailto:@%40'.repeat(900),
    'é\u0301\u200b'.repeat(3400),
  ]
  const [{ read }] = await project.sql(
    `select array_agg(cardinality(internal.moderation_readings(left(t, 10240)))) as read from unnest($1::text[]) t`,
    [texts],
  )
  expect(read).toHaveLength(texts.length)
  for (const text of texts) {
    const began = performance.now()
    await project.sql('select count(*) from internal.moderation_hosts(left($1, 10240))', [text])
    expect(performance.now() - began, text.slice(0, 10)).toBeLessThan(1000)
  }
  const hidden = `select internal.moderate('display_name', 'user', $1::uuid, $2)`
  const user = await project.user()
  const as = { 'app.caller': 'user', 'app.user_id': user.id }
  await expect(project.as('app_auth', as, hidden, [user.id, `${texts[0]}casino`])).rejects.toThrow(/rejects/)
})

test('a simulation counts what a rule would have caught, and writes nothing', async () => {
  harness.setTime('2030-01-10T12:00:00Z')
  const own = await harness.project()
  await own.sql(
    `insert into app.users (display_name, created_at)
     select case when n <= 3 then 'Casino ' || n else 'Fine ' || n end, internal.now() - n * interval '1 day' from generate_series(1, 20) n`,
  )
  await own.sql(`insert into app.groups (name, created_at) values ('my casino', internal.now())`)
  const simulate = async (rule_type: string, config: object, days?: number) => {
    const { data } = await own.admin.post('/moderation/rules', { name: 'Rule', rule_type, config })
    return (await own.admin.post(`/moderation/rules/${data.id}/simulate`, { days })).data
  }
  // the clock of the harness is that of requests: rows have its time
  await own.sql(`update app.users set created_at = timestamptz '2030-01-10T12:00:00Z' - (created_at - created_at)`)
  await own.sql(
    `update app.users set created_at = timestamptz '2030-01-10T12:00:00Z' - split_part(display_name, ' ', 2)::int * interval '1 day'
      where display_name ~ '^(Casino|Fine) '`,
  )
  await own.sql(`update app.groups set created_at = '2030-01-10T12:00:00Z'`)
  expect(await simulate('keyword', { words: ['casino'] })).toEqual({
    days: 7,
    checked: 8,
    caught: 4,
    by_kind: { collection_row: 0, display_name: 3, feed_entry: 0, group_name: 1, message: 0, review: 0 },
    is_complete: true,
  })
  expect(await simulate('regex', { pattern: 'no 1$', applies_to: ['display_name'] }, 1)).toMatchObject({
    days: 1,
    checked: 1,
    caught: 1,
  })
  expect(await simulate('new_account', { max_age_hours: 1, applies_to: ['display_name'] })).toMatchObject({ caught: 7 })
  expect(await simulate('rate', { max: 1, window_seconds: 60, applies_to: ['display_name'] })).toMatchObject({
    caught: 0,
  })
  const [one, two, subject] = [await own.user(), await own.user(), await own.user()]
  for (const { id } of [one, two]) await report(own.onBehalfOf(id), 'user', subject.id)
  expect(await simulate('report_threshold', { count: 2, window_hours: 1 })).toMatchObject({ checked: 2, caught: 1 })
  expect(await simulate('report_threshold', { count: 3, window_hours: 1 })).toMatchObject({ checked: 2, caught: 0 })
  expect((await own.sql('select count(*)::int as n from app.moderation_items where rule_id is not null'))[0].n).toBe(0)
})
