import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()

const sentences: [definition: string, column: string, sentence: string | null][] = [
  ['check (char_length(a) between 1 and 200)', 'a', 'must have 1 to 200 characters.'],
  ['check (char_length(a) <= 200)', 'a', 'must have at most 200 characters.'],
  ['check (internal.is_line(a))', 'a', 'must be one line of text.'],
  ["check (a in ('x', 'y', 'z'))", 'a', 'must be x, y or z.'],
  ["check (a in ('x', 'y'))", 'a', 'must be x or y.'],
  ["check (a ~ '^[a-z]{0,127}$')", 'a', 'must match ^[a-z]{0,127}$.'],
  ['check (n between 0 and 48)', 'n', 'must be 0 to 48.'],
  ['check (n between 1 and 1000000000000)', 'n', 'must be 1 to 1000000000000.'],
  ['check (cardinality(l) <= 20)', 'l', 'must have at most 20 items.'],
  ["check (jsonb_typeof(j) = 'object')", 'j', 'must be an object.'],
  ['check (n >= 1)', 'n', null],
  ['check (n <> 5)', 'n', null],
  ["check (jsonb_typeof(j) = 'array' and jsonb_array_length(j) <= 5)", 'j', null],
  ["check (char_length(a) between 1 and 255 and a !~ '^ ')", 'a', null],
  ["check (a <> 'x''y')", 'a', null],
]

/** The comment of a check after `internal.checks_declare`, on a table that is made for it; `comment` is one that stands there before. */
const commentOf = async (
  check: string,
  { comment = null as string | null, table = 'app.checked_rows', columns = 'a text, n bigint, l text[], j jsonb' } = {},
): Promise<string | null> => {
  await project.sql(`create table ${table} (${columns}, constraint "The 'rule'" ${check})`)
  try {
    if (comment) await project.sql(`comment on constraint "The 'rule'" on ${table} is '${comment}'`)
    await project.sql("select internal.checks_declare($1::regclass, 'INVALID_INPUT')", [table])
    const [found] = await project.sql(
      "select obj_description(oid, 'pg_constraint') as comment from pg_constraint where conrelid = $1::regclass and contype = 'c'",
      [table],
    )
    return found.comment
  } finally {
    await project.sql(`drop table ${table}`)
  }
}

test.each(sentences)('%s', async (check, column, sentence) => {
  expect(await commentOf(check)).toBe(sentence && `400 INVALID_INPUT ${column}: ${sentence}`)
})

test('a check of several columns gets none, and a comment that stands is kept', async () => {
  expect(await commentOf('check (char_length(a) <= n)')).toBeNull()
  const comment = '400 VALIDATION_ERROR hours: must be few.'
  expect(await commentOf('check (n between 0 and 48)', { comment })).toBe(comment)
})

test('a column that only functions write is left out', async () => {
  await project.sql(
    'create table app.checked_rows (a text check (char_length(a) <= 5), b text check (char_length(b) <= 5))',
  )
  try {
    await project.sql(`select internal.checks_declare('app.checked_rows', but => '{b}')`)
    const comments = await project.sql(
      `select obj_description(oid, 'pg_constraint') as comment from pg_constraint where conrelid = 'app.checked_rows'::regclass order by conname`,
    )
    expect(comments).toEqual([
      { comment: '400 VALIDATION_ERROR a: must have at most 5 characters.' },
      { comment: null },
    ])
  } finally {
    await project.sql('drop table app.checked_rows')
  }
})

test('names that have to be quoted', async () => {
  expect(await commentOf('check (char_length("A b") <= 5)', { table: 'app."Odd rows"', columns: '"A b" text' })).toBe(
    '400 INVALID_INPUT A b: must have at most 5 characters.',
  )
})
