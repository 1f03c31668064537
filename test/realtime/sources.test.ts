import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

/** The declaration of what a table publishes, on tables of this test. Nobody is connected, so what is published stays where it is written. */
const harness = await startHarness()
const project = await harness.project()
const { sql } = project

const query = `select 'sample:' || r.id, op, json_build_object('n', r.n, 'was', was.n) where r.n <> 13`
const made = async (name: string, options: string) => {
  await sql(`create table app.${name} (id int primary key, n int not null, note text)`)
  await sql(`select internal.source_declare(null::app.${name}, 'A sample.', publishes => $1, ${options})`, [query])
  await sql(`select internal.realtime_listen('sample:' || i, false) from generate_series(1, 3) i`)
}
/** What was published, and is forgotten then. */
const published = async () => {
  const rows = await sql(`with gone as (delete from app.realtime_publications returning id, channel, event, payload)
    select channel, event, payload::json as payload from gone order by id`)
  return rows.map(({ channel, event, payload }) => [channel, event, payload.n, payload.was])
}

describe('a source', () => {
  for (const [name, options] of [
    ['samples_by_row', `ops => 'insert', changes => '{n}'`],
    ['samples_by_statement', `ops => 'insert', changes => '{n}', by_statement => '{id}'`],
  ] as const) {
    test(`${name}: publishes inserts and changes of its columns, to channels that somebody listens to`, async () => {
      await made(name, options)
      await sql(`insert into app.${name} values (1, 10, null), (2, 20, null), (3, 13, null), (4, 40, null)`)
      expect(await published()).toEqual([
        ['sample:1', 'INSERT', 10, null],
        ['sample:2', 'INSERT', 20, null],
      ])
      await sql(`update app.${name} set n = case id when 1 then n else n + 1 end, note = 'x'`)
      expect(await published()).toEqual([
        ['sample:2', 'UPDATE', 21, 20],
        ['sample:3', 'UPDATE', 14, 13],
      ])
      await sql(
        `insert into app.${name} values (1, 11, null), (5, 5, null) on conflict (id) do update set n = excluded.n`,
      )
      expect(await published()).toEqual([['sample:1', 'UPDATE', 11, 10]])
      await sql(`update app.${name} set note = 'y'`)
      await sql(`delete from app.${name}`)
      expect(await published()).toEqual([])
    })

    test(`${name}: publishes nothing, and does not even look, where nobody listens`, async () => {
      await sql(`select setval('app.realtime_subscribed', 0)`)
      // who is asked for a channel would fail
      await sql(
        `create or replace function internal.publish_${name}(op text, r app.${name}, was app.${name}) returns void
         language plpgsql as $$ begin raise exception 'asked'; end $$`,
      )
      await sql(`insert into app.${name} values (1, 1, null)`)
      await sql(`update app.${name} set n = 2`)
      await sql(`select internal.realtime_listen('sample:2', false)`)
      await expect(sql(`update app.${name} set n = 3`)).rejects.toThrow('asked')
      await expect(sql(`insert into app.${name} values (2, 1, null)`)).rejects.toThrow('asked')
    })
  }

  test('publishes deletions with the row as it was, after what it does besides', async () => {
    await made(
      'samples_gone',
      `ops => 'insert or update or delete', also => $also$
      if op = 'DELETE' then perform internal.notify_servers(array['sample:' || r.id], '~check'); end if;$also$`,
    )
    await sql(`insert into app.samples_gone values (1, 10, null)`)
    await sql(`update app.samples_gone set note = 'x'`)
    await sql(`delete from app.samples_gone`)
    const rows = await sql(`select event, payload::json ->> 'n' as n from app.realtime_publications order by id`)
    expect(rows.map(({ event, n }) => [event, n])).toEqual([
      ['INSERT', '10'],
      ['UPDATE', '10'],
      ['~check', null],
      ['DELETE', '10'],
    ])
  })

  test('that cannot work is refused when it is declared', async () => {
    await sql(`create table app.samples_bad (id int primary key, n int not null)`)
    const declare = (options: string) =>
      sql(`select internal.source_declare(null::app.samples_bad, 'Bad.', ${options})`)
    await expect(declare(`publishes => 'select 1'`)).rejects.toThrow('a source is a table')
    await expect(declare(`ops => 'truncate'`)).rejects.toThrow('a source is a table')
    await expect(declare(`ops => 'insert or delete', by_statement => '{id}'`)).rejects.toThrow('a source is a table')
    await expect(declare(`ops => 'insert', changes => '{m}'`)).rejects.toThrow('has not all of the columns')
    await expect(sql(`select internal.source_declare(null::text, 'Bad.', ops => 'insert')`)).rejects.toThrow(
      'a source is a table',
    )
  })
})
