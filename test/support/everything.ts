import { randomBytes } from 'node:crypto'
import { expect } from 'vitest'
import { download, uploadFile } from '#test/support/backups.ts'
import { ask, createTestProject } from '#test/support/process.ts'
import { openSocket } from '#test/support/realtime.ts'

type Project = Awaited<ReturnType<typeof createTestProject>>
/** A project with a user, who is signed in or on whose behalf a server key asks. */
export type Story = Omit<Project, 'user'> & { readonly user: Record<string, string> }
/** Runs statements in the project's database, as the owner of our objects: what a DBA does with `npm run db:url`. */
export type Sql = (text: string) => Promise<any[]>

/** Of every kind that a DBA may make, in a schema of Trellis and in ones of their own. Names are not those that Postgres would choose. */
const byHand = `
  create schema crm;
  grant usage on schema crm to app_admin;
  create type crm.state as enum ('new', 'won');
  create type crm.place as (street text, city text collate "C");
  create domain crm.rating as int default 3 not null constraint crm_rating_1_to_5 check (value between 1 and 5);
  create type crm.spans as range (subtype = float8, subtype_diff = float8mi);
  create sequence crm.numbers increment 7 start 100;
  create table crm.deals (
    id int generated always as identity (sequence name crm.deal_ids start with 10) primary key,
    state crm.state not null default 'new', place crm.place, rating crm.rating, span crm.spans,
    number bigint not null default nextval('crm.numbers'), title text not null unique, doubled int generated always as (length(title) * 2) stored
  );
  create table crm.steps (id serial primary key, deal_id int not null references crm.deals on delete cascade, body text);
  create function crm.of_deal(d crm.deals) returns text language sql stable return d.title;
  create function crm.won() returns setof crm.deals language plpgsql stable as $$ begin return query select * from crm.deals where state = 'won'; end $$;
  create view crm.won_deals with (security_invoker = true) as select d.id, crm.of_deal(d) as title from crm.deals d where d.state = 'won';
  create view crm.titles as select title from crm.won_deals where length(title) > 0;
  create materialized view crm.counted as select state, count(*) as deals from crm.deals group by state;
  create unique index counted_by_state on crm.counted (state);
  create index deals_by_title on crm.deals (lower(title));
  create statistics crm.deals_together (dependencies) on state, title from crm.deals;
  create function crm.shout() returns trigger language plpgsql as $$ begin new.title := upper(new.title); return new; end $$;
  create trigger shout before insert on crm.deals for each row execute function crm.shout();
  create function crm.into_deals() returns trigger language plpgsql as $$ begin insert into crm.deals (title, state) values (new.title, 'won'); return new; end $$;
  create trigger into_deals instead of insert on crm.won_deals for each row execute function crm.into_deals();
  create rule no_deletion as on delete to crm.steps do instead nothing;
  create procedure crm.win(title text) language sql begin atomic update crm.deals set state = 'won' where deals.title = win.title; end;
  alter table crm.deals enable row level security;
  create policy "admins read deals" on crm.deals for select to app_admin using (state <> 'won' or rating > 1);
  grant select, insert (title) on crm.deals to app_admin;
  grant select on crm.won_deals, crm.counted to app_admin;
  grant select (title) on crm.titles to app_user;
  grant execute on procedure crm.win to app_worker;
  revoke usage on type crm.place from public;
  grant usage on sequence crm.numbers to app_admin;
  comment on view crm.titles is 'Titles'; comment on column crm.titles.title is 'of what was won'; comment on type crm.state is 'how far';
  comment on schema crm is 'by hand';
  alter default privileges in schema crm grant select on tables to app_dashboard;
  insert into crm.deals (title, place, span, rating) values ('one', ('a street', 'b'), '[1,2.5)', 5), ('two', null, null, 1);
  insert into crm.steps (deal_id, body) select id, repeat('long ', 200000) from crm.deals;
  alter table crm.deals add constraint deals_are_not_one check (title <> 'ONE') not valid;
  create schema extra;
  create table extra.plain (n int not null, t text default 'x');
  insert into extra.plain select generate_series(1, 100);
  create function extra.by_hand(n int) returns int language sql return n + 1;
  create function extra.joined(whole text, part text) returns text language sql immutable return coalesce(whole || ' ', '') || part;
  create aggregate extra.sentence(text) (sfunc = extra.joined, stype = text, initcond = '');
  comment on aggregate extra.sentence(text) is 'Words';
  create view extra.seen as select p.n from extra.plain p;
  create view app.user_counts as select count(*) as users from app.users;
  create function rest.notes_of(topic uuid) returns setof rest.notes language sql stable
    begin atomic select n.* from rest.notes n where n.topic_id = topic; end;
  grant execute on function rest.notes_of to app_rest;
  create index users_by_day on app.users (date_trunc('day', created_at at time zone 'UTC'));
  refresh materialized view crm.counted;`

const columns = [
  { name: 'title', type: 'text', nullable: false, max_length: 200, unique: true, moderated: true },
  { name: 'count', type: 'integer', min: 0, max: 10, default: 1 },
  { name: 'large', type: 'bigint' },
  { name: 'exact', type: 'numeric' },
  { name: 'rough', type: 'double' },
  { name: 'is_open', type: 'boolean', default: true },
  { name: 'other', type: 'uuid', default: { $fn: 'uuid' } },
  { name: 'day', type: 'date' },
  { name: 'at', type: 'timestamptz', default: { $fn: 'now' } },
  { name: 'more', type: 'jsonb' },
  { name: 'place', type: 'vector', dimensions: 3 },
  { name: 'tags', type: 'text[]' },
  { name: 'numbers', type: 'integer[]' },
  { name: 'kind', type: 'text', enum: ['a', 'b'], default: 'a' },
  { name: 'topic_id', type: 'uuid', references: { collection: 'topics', on_delete: 'restrict' } },
]

/** A project that uses what there is: REST, GraphQL, files, collections of every type, realtime, and what a DBA has made. */
export const createEverything = async (
  url: string,
  open: (story: Story) => Sql,
  receiver = 'https://127.0.0.1:9/x',
) => {
  const story: Story = await createTestProject(url)
  const admin = `/v1/admin/projects/${story.projectId}`
  const done = async (
    method: string,
    path: string,
    body: unknown,
    headers: Record<string, string> = story.developer,
  ) => {
    const answer = await ask(url, method, path, body, headers)
    expect([200, 201], `${method} ${path}: ${JSON.stringify(answer.body)}`).toContain(answer.status)
    return answer.body.data
  }
  await done('PATCH', admin, { rest_enabled: true, graphql_enabled: true })
  await done('POST', `${admin}/collections`, { name: 'topics', columns: [{ name: 'name', type: 'text' }] })
  await done('POST', `${admin}/collections`, {
    ...{ name: 'notes', read_policy: 'public', realtime: true, description: 'Notes.', columns },
    indexes: [
      { columns: ['user_id', 'kind'], unique: true },
      { columns: ['tags'], method: 'gin' },
      { columns: ['title'], method: 'trgm' },
      { columns: ['at'], where: { column: 'is_open', op: 'eq', value: true } },
    ],
  })
  await done('POST', `${admin}/streaks`, { key: 'daily', name: 'Daily', qualifying_event: 'counted' })
  await done('POST', `${admin}/webhooks`, { event_name: 'counted', target_url: receiver })
  await done('POST', `${admin}/ai/providers`, { name: 'openai', api_key: 'sk-0123456789abcdef' })
  const topic = await done('POST', '/v1/client/collections/topics', { name: 'a topic' }, story.user)
  const note = await done(
    'POST',
    '/v1/client/collections/notes',
    {
      ...{
        title: 'before',
        large: '9007199254740993',
        exact: '1.10',
        rough: 0.1,
        day: '2026-02-28',
        place: [1, 0.5, 0],
      },
      ...{ more: { long: 'long '.repeat(20_000) }, tags: ['a', 'b'], numbers: [1, 2], topic_id: topic.id },
    },
    story.user,
  )
  const { effects } = await done('POST', '/v1/client/events', { event_name: 'counted' }, story.user)
  expect(effects.streaks).toMatchObject([{ key: 'daily', change: 'started' }])
  // makes the views that PostgREST serves
  const rows = await ask(url, 'GET', '/rest/v1/notes?select=title', undefined, restHeaders(story))
  expect(rows, JSON.stringify(rows.body)).toMatchObject({ status: 200, body: [{ title: 'before' }] })
  const bytes = randomBytes(50_000)
  const asset = await uploadFile(url, story, bytes)
  await open(story)(byHand)
  return { story, note, bytes, asset }
}

export type Everything = Awaited<ReturnType<typeof createEverything>>

const restHeaders = ({ user }: Pick<Story, 'user'>): Record<string, string> =>
  user['x-on-behalf-of']
    ? { apikey: String(user['x-api-key']), 'x-on-behalf-of': user['x-on-behalf-of'] }
    : { apikey: String(user['x-api-key']), authorization: String(user['authorization']) }

/** Uses it in each way once more: what is lost by a copy shows at the latest here. `story` is that of the copy. */
export const useEverything = async (
  url: string,
  { note, bytes, asset }: Everything,
  story: Story,
  sql: Sql,
): Promise<void> => {
  const rest = restHeaders(story)
  await expect
    .poll(async () => (await ask(url, 'GET', '/v1/client/collections/notes', undefined, story.user)).status, {
      timeout: 30_000,
    })
    .toBe(200)
  const read = await ask(url, 'GET', `/v1/client/collections/notes/${note.id}`, undefined, story.user)
  expect(read.body.data).toEqual(note)
  // by REST: a row is read, changed and refused as before
  const found = await ask(url, 'GET', '/rest/v1/notes?select=title,topic_id,tags', undefined, rest)
  expect(found, JSON.stringify(found.body)).toMatchObject({
    status: 200,
    body: [{ title: 'before', tags: ['a', 'b'] }],
  })
  const called = await ask(url, 'GET', `/rest/v1/rpc/notes_of?topic=${note.topic_id}&select=title`, undefined, rest)
  expect(called, JSON.stringify(called.body)).toMatchObject({ status: 200, body: [{ title: 'before' }] })
  const twice = await ask(url, 'POST', '/rest/v1/notes', { title: 'before', kind: 'b' }, rest)
  expect(twice, JSON.stringify(twice.body)).toMatchObject({ status: 409 })
  const wrong = await ask(url, 'POST', '/v1/client/collections/notes', { title: 'x', kind: 'c' }, story.user)
  expect(wrong.status).toBe(400)
  const socket = await openSocket(url, story.user)
  try {
    const ack = await socket.subscribe('collection:notes')
    expect(ack, JSON.stringify(ack)).toMatchObject({ type: 'ack' })
    const written = await fetch(`${url}/rest/v1/notes`, {
      method: 'POST',
      headers: { ...rest, 'content-type': 'application/json', prefer: 'return=representation' },
      body: JSON.stringify({ title: 'by rest', kind: 'b', topic_id: note.topic_id }),
    })
    expect(written.status, await written.clone().text()).toBe(201)
    expect(await written.json()).toMatchObject([{ title: 'by rest', count: 1, is_open: true }])
    expect(await socket.next({ type: 'event' })).toMatchObject({ payload: { row: { title: 'by rest' } } })
  } finally {
    await socket.close()
  }
  const query = '{ notes { totalCount nodes { title topicId userId } } }'
  const graph = await ask(url, 'POST', `/v1/admin/projects/${story.projectId}/graphql`, { query }, story.developer)
  expect(graph.body.data?.notes, JSON.stringify(graph.body)).toMatchObject({
    totalCount: 2,
    nodes: expect.arrayContaining([{ title: 'by rest', topicId: note.topic_id, userId: story.userId }]),
  })
  expect((await download(url, story, asset))?.equals(bytes)).toBe(true)
  // what a DBA has made does what it did
  expect(
    await sql(`insert into crm.won_deals (title) values ('by hand');
               delete from crm.steps;
               select count(*)::int as steps, (select trim(extra.sentence(title)) from crm.titles) as titles, (select sum(deals)::int from crm.counted) as counted,
                      (select max(id) from crm.deals) as id, (select max(number)::int from crm.deals) as number, (select extra.by_hand(1)) as two,
                      (select count(*)::int from extra.seen) as seen, (select users::int from app.user_counts) as users
                 from crm.steps`),
  ).toMatchObject([{ steps: 2, titles: 'BY HAND', counted: 2, number: 114, two: 2, seen: 100, users: 1 }])
}
