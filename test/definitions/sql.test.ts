import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

/** The dynamic SQL of definitions never contains text of callers, and quotes identifiers of the catalog. */
const harness = await startHarness()
const project = await harness.project()

const literal = (text: string) => `'${text.replaceAll("'", "''")}'`

describe('dynamic SQL', () => {
  const asAdministrator = (text: string, values: unknown[]) =>
    project.as('app_admin', { 'app.caller': 'developer' }, text, values)
  const hostile = [
    ...[
      '',
      ' ',
      '"',
      "'",
      '""',
      "''",
      '$1',
      '%I',
      '%s',
      '%',
      '\\',
      ';',
      '--',
      '/*',
      'null',
      'xp_rules',
      'app.xp_rules',
    ],
    ...[
      "x'; drop table app.xp_rules; --",
      'x"; drop table app.xp_rules; --',
      "xp_rule'",
      'xp_rule"',
      'XP_RULE',
      'xp_rule ',
    ],
    ...['internal.xp_rule_check', '(select 1)', 'id) values (1); --', '\u202e', 'ключ', 'a'.repeat(10_000)],
  ]
  const state = () =>
    project.sql(
      'select count(*)::int as count, md5(string_agg(r::text, null order by r.id)) as hash from app.xp_rules r',
    )

  test('knows no kind but those that are declared', async () => {
    for (const kind of hostile) {
      for (const call of ['definition_list($1)', "definition_get($1, 'a')", "definition_create($1, '{}')"])
        await expect(asAdministrator(`select api.${call}`, [kind])).rejects.toThrow('no definition is declared as')
      for (const call of ["definition_update($1, 'a', '{}')", "definition_delete($1, 'a')"])
        await expect(asAdministrator(`select api.${call}`, [kind])).rejects.toThrow('no definition is declared as')
    }
  })

  test('takes what callers send as values only', async () => {
    await project.admin.post('/xp/rules', { key: 'stays', name: 'Stays', event_name: 'stays', amount: 5 })
    const before = await state()
    for (const text of hostile) {
      for (const call of ["definition_get('xp_rule', $1)", "definition_delete('xp_rule', $1)"])
        await expect(asAdministrator(`select api.${call}`, [text]), text).rejects.toThrow('There is no such rule.')
      await asAdministrator("select api.definition_update('xp_rule', 'stays', $1)", [JSON.stringify({ [text]: text })])
      await asAdministrator("select api.definition_list('xp_rule', filter => $1)", [JSON.stringify({ [text]: text })])
      const name = text.slice(0, 200) || 'x'
      const named = await project.admin.patch('/xp/rules/stays', { name })
      const [{ is_line }] = await project.sql('select internal.is_line($1) as is_line', [name])
      if (is_line) expect(named.data?.name, named.text).toBe(name)
      else expect(named.error?.details, named.text).toEqual({ field: 'name', reason: 'must be one line of text' })
    }
    expect((await project.admin.patch('/xp/rules/stays', { name: 'Stays' })).status).toBe(200)
    expect((await state())[0].count).toBe(before[0].count)
  })

  test('quotes what the catalog holds, whatever its name and its default', async () => {
    const column = 'Wéird "%I" \'$1\'; drop table app.xp_rules; --'
    const [{ made, again }] = await project
      .sql(
        `do $do$ begin
         execute format('alter table app.xp_boosts add column %I text default %L', ${literal(column)}, ${literal(column)});
         perform internal.definition_declare('xp_boost');
       end $do$`,
      )
      .then(() =>
        project.sql(
          `select r.row as made, (api.definition_update('xp_boost', 'Weird', jsonb_build_object($1::text, 'other'))).body -> 'data' as again
           from (select (api.definition_create('xp_boost', '{"name": "Weird", "multiplier": 2}')).body -> 'data' as row) r`,
          [column],
        ),
      )
    expect([made[column], again[column]]).toEqual([column, 'other'])
  })
})
