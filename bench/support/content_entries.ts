// Content for bench/content.ts: entries in five languages, and a thousand of them that are published in one second.
import { setTimeout as sleep } from 'node:timers/promises'
import { ask } from '#test/support/process.ts'
import { closedLoop } from './closed_loop.ts'
import { asAdmin, type Installation } from './installation.ts'

export const locales = ['en', 'de', 'fr', 'es', 'pt']
type Headers = Readonly<Record<string, string>>

/** Entries of ten types and twenty tags, each in five languages of ten fields, all published; and the same fields as one row of JSON. */
export const fillContent = async ({ cluster }: Installation, database: string, entries: number): Promise<void> => {
  const sql = (text: string, values: unknown[] = []) => asAdmin(cluster, database, text, values)
  await sql(
    `insert into app.content_entries (key, content_type, default_locale, tags)
     select 'entry-' || n, 'type-' || n % 10, 'en', array['tag-' || n % 20, 'all'] from generate_series(1, $1::int) n`,
    [entries],
  )
  await sql(
    `insert into app.content_locales (entry_id, locale, version, published_version, published_at)
     select e.id, l, 1, 1, now() from app.content_entries e, unnest($1::text[]) l`,
    [locales],
  )
  await sql(
    `insert into app.content_versions (entry_id, locale, version, fields, author)
     select l.entry_id, l.locale, 1, f.fields, '{"type": "developer", "id": null}'
       from app.content_locales l
      cross join lateral (select jsonb_object_agg('field_' || n, l.locale || ' text of field ' || n || repeat(' and more', 10))
                            from generate_series(1, 10) n) f (fields)`,
  )
  await sql(
    `create table app.bench_documents (key text primary key, data jsonb not null);
     insert into app.bench_documents
     select e.key, v.fields from app.content_entries e join app.content_versions v on v.entry_id = e.id and v.locale = 'de'`,
  )
  await sql(
    `insert into app.config_keys (key, value) select 'key_' || n, to_jsonb('value ' || n) from generate_series(1, 20) n`,
  )
  await sql('vacuum analyze')
}

export type Place = {
  readonly url: string
  readonly admin: string
  readonly developer: Headers
  readonly key: Headers
  readonly database: string
}
export type Scheduled = { readonly visible: number; readonly settled: number; readonly received: number }

/**
 * So many entries are scheduled for one second, which is so many milliseconds from now: how many a read shows right after it, and when the last event was
 * written and received, in seconds.
 */
export const measureSchedules = async (
  { cluster }: Installation,
  { url, admin, developer, key, database }: Place,
  receiver: { readonly requests: readonly unknown[]; readonly url: string },
  { schedules, inMs }: { schedules: number; inMs: number },
): Promise<Scheduled> => {
  const sql = <T extends Record<string, unknown>>(text: string, values: unknown[] = []) =>
    asAdmin<T>(cluster, database, text, values)
  const hook = { event_name: 'svc.content.published', target_url: receiver.url }
  await ask(url, 'POST', `${admin}/webhooks`, hook, developer)
  await sql(
    `insert into app.content_entries (key, content_type, default_locale, tags)
     select 'later-' || n, 'later', 'en', '{later}' from generate_series(1, $1::int) n`,
    [schedules],
  )
  await sql(
    `insert into app.content_locales (entry_id, locale) select id, 'en' from app.content_entries where content_type = 'later'`,
  )
  await sql(`insert into app.content_versions (entry_id, locale, version, fields, author)
    select id, 'en', 1, '{"title": "Later"}', '{"type": "developer", "id": null}' from app.content_entries where content_type = 'later'`)
  const at = new Date(Date.now() + inMs)
  const headers = { ...developer, 'content-type': 'application/json' }
  const body = JSON.stringify({ publish_at: at.toISOString() })
  await closedLoop(
    url,
    (n) => ({ path: `${admin}/content/later-${n + 1}/locales/en/publish`, method: 'POST', headers, body }),
    200,
    { callers: 8, seconds: 60, most: schedules },
  )
  if (Date.now() > at.getTime()) throw new Error('the schedules were made too late')
  await sleep(at.getTime() - Date.now())
  const { body: page } = await ask(url, 'GET', '/v1/client/content?tag=later&limit=1', undefined, key)
  const since = () => (Date.now() - at.getTime()) / 1000
  let settled = Number.NaN
  for (
    const deadline = Date.now() + 60_000;
    Date.now() < deadline && receiver.requests.length < schedules;
    await sleep(50)
  ) {
    if (!Number.isNaN(settled)) continue
    const [left] = await sql<{ n: number }>(
      'select count(*)::int as n from app.content_locales where publish_at is not null',
    )
    if (left?.n === 0) settled = since()
  }
  return { visible: page.total as number, settled, received: since() }
}
