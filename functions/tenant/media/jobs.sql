-- Image jobs: queued with their cause, run by the task media__job in processes of their own.
create or replace function internal.media_job_json(j app.media_jobs) returns json
language sql stable as $$
  select json_build_object(
    'id', (media_job_json.j).id, 'asset_id', (media_job_json.j).asset_id, 'status', (media_job_json.j).status,
      'operations', (media_job_json.j).operations,
    'attempts', (media_job_json.j).attempts,
    'error', case when (media_job_json.j).error_code is not null
                  then json_build_object('code', (media_job_json.j).error_code,
                                         'message', (media_job_json.j).error_message) end,
    'result_asset_id', (media_job_json.j).result_asset_id, 'created_at', internal.iso((media_job_json.j).created_at),
    'started_at', internal.iso((media_job_json.j).started_at),
    'finished_at', internal.iso((media_job_json.j).finished_at))
$$;
comment on function internal.media_job_json is 'A job as responses show it.';

create or replace function internal.tg_media_assets__thumbnail() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  job uuid;
begin
  insert into app.media_jobs (asset_id, version, operations, is_thumbnail)
  values (new.id, new.object_version, '[{"type": "thumbnail", "width": 512, "height": 512, "format": "webp"}]', true)
  on conflict (asset_id, version) where is_thumbnail do nothing
  returning id into job;
  if job is not null then
    perform internal.enqueue('media__job', job::text);
  end if;
  return null;
end $$;
comment on function internal.tg_media_assets__thumbnail is
  'After the bytes of an image were committed: queues its thumbnail, 512 pixels of WebP.';

create or replace trigger tg_media_assets__thumbnail_of_insert
  after insert on app.media_assets
  for each row when (new.status = 'committed' and new.mime_type like 'image/%')
  execute function internal.tg_media_assets__thumbnail();
create or replace trigger tg_media_assets__thumbnail_of_update
  after update of status, object_version on app.media_assets
  for each row when (new.status = 'committed' and new.mime_type like 'image/%'
                     and (old.status <> 'committed' or old.object_version <> new.object_version))
  execute function internal.tg_media_assets__thumbnail();

create or replace function internal.media_job_create(asset_id uuid, operations jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  a app.media_assets;
  j app.media_jobs;
  wait int;
begin
  perform internal.check_caller('developer', 'jobs are made by administrators');
  select m.* into a from app.media_assets m where m.id = media_job_create.asset_id
     and m.status = 'committed' for key share;
  perform internal.check_found(a.id is not null, 'asset');
  if a.mime_type not like 'image/%' then
    perform internal.fail(400, 'MIME_NOT_ALLOWED', 'Jobs work on images only: send the id of an image.',
                          '{"field": "asset_id", "reason": "must be an image"}');
  end if;
  wait := internal.take_limits('[{"key": "media jobs", "max": 100, "seconds": 60}]');
  if wait is not null then
    return internal.refuse(429, 'RATE_LIMITED', 'A project makes at most 100 jobs a minute.',
                           json_build_object('retry_after_seconds', wait),
                           json_build_object('Retry-After', wait::text));
  end if;
  insert into app.media_jobs as n (asset_id, version, operations)
    values (a.id, a.object_version, media_job_create.operations) returning n.* into j;
  perform internal.enqueue('media__job', j.id::text);
  perform internal.audit('media_jobs.create', 'media', a.id::text,
                         json_build_object('operations', json_build_array(null, j.operations)), 202);
  return internal.reply(202, json_build_object('id', j.id, 'status', j.status));
end $$;
comment on function internal.media_job_create is
  'Queues work on an image: 202 {id, status}. Refuses 404 NOT_FOUND, 400 MIME_NOT_ALLOWED, 429 RATE_LIMITED (100 a
   minute). Locks the asset.';

create or replace function api.media_job_create(asset_id uuid, operations jsonb, idempotency_key text default null,
                                                body_hash text default null)
returns api.reply
language plpgsql volatile as $$
declare
  route constant text := 'POST media/jobs';
  answer api.reply := internal.idempotency_begin(route, media_job_create.idempotency_key, media_job_create.body_hash);
begin
  if answer is not null then
    return answer;
  end if;
  answer := internal.media_job_create(media_job_create.asset_id, media_job_create.operations);
  perform internal.idempotency_end(route, media_job_create.idempotency_key, answer);
  return answer;
end $$;
comment on function api.media_job_create is
  'Queues work on an image. Refuses as internal.media_job_create. Refuses also 409 IDEMPOTENCY_CONFLICT.';

create or replace function api.media_job_get(job_id uuid) returns api.reply
language plpgsql stable as $$
declare
  j app.media_jobs;
begin
  select n.* into j from app.media_jobs n where n.id = media_job_get.job_id;
  perform internal.check_found(j.id is not null, 'job');
  return internal.reply(200, internal.media_job_json(j));
end $$;
comment on function api.media_job_get is 'A job. Refuses 404 NOT_FOUND.';

select internal.list_declare('media_jobs_page', null::app.media_jobs, 'media_job_json', '{created_at,id}',
                             filters => '{asset_id,status}', is_skewed => true,
                             is_counted => true, counted_filters => '{status}');

create or replace function api.media_jobs_list(asset_id uuid default null, status text default null,
                                               page_offset bigint default 0, page_limit bigint default 50)
returns api.reply
language sql stable as $$
  select internal.media_jobs_page(media_jobs_list.asset_id, media_jobs_list.status, media_jobs_list.page_offset,
                                  media_jobs_list.page_limit)
$$;
comment on function api.media_jobs_list is 'A page of jobs, newest first, all or those of an asset or a status.';

create or replace function api.media_job_begin(job_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  j app.media_jobs;
  a app.media_assets;
begin
  select n.* into j from app.media_jobs n where n.id = media_job_begin.job_id
     and n.status in ('queued', 'running') for update;
  if j.id is null then
    return internal.reply(200, null);
  end if;
  select m.* into a from app.media_assets m where m.id = j.asset_id and m.status = 'committed'
     and m.object_version = j.version;
  if a.id is null or j.attempts >= 3 then
    update app.media_jobs n
       set status = 'failed', finished_at = internal.now(),
         error_code = case when a.id is null then 'ASSET_GONE' else 'IMAGE_FAILED' end,
           error_message = case when a.id is null then 'The file was deleted or replaced.'
                                else 'The work was broken off three times.' end
     where n.id = j.id;
    return internal.reply(200, null);
  end if;
  update app.media_jobs n set status = 'running', attempts = n.attempts + 1, started_at = internal.now()
    where n.id = j.id returning n.* into j;
  return internal.reply(200, json_build_object(
    'asset_id', j.asset_id, 'version', j.version, 'operations', j.operations, 'is_thumbnail', j.is_thumbnail,
      'attempts', j.attempts, 'key', a.key,
    'filename', a.filename, 'mime_type', a.mime_type, 'result_id', internal.new_id(),
    'result_version', internal.media_new_version()));
end $$;
comment on function api.media_job_begin is
  'For the task media__job: begins an attempt and answers what is to be done; null when the job is over. A job whose
   file is gone, or that was broken off three times, fails. Locks the job.';

create or replace function api.media_job_fail(job_id uuid, code text, message text, is_final boolean) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  j app.media_jobs;
begin
  update app.media_jobs n
     set status = case when media_job_fail.is_final or n.attempts >= 3 then 'failed' else 'queued' end,
         finished_at = case when media_job_fail.is_final or n.attempts >= 3 then internal.now() end,
         error_code = media_job_fail.code, error_message = left(media_job_fail.message, 500)
   where n.id = media_job_fail.job_id and n.status = 'running'
  returning n.* into j;
  return internal.reply(200, to_json(coalesce(j.status = 'failed', true)));
end $$;
comment on function api.media_job_fail is
  'For the task media__job: notes a failed attempt; the third one fails the job, a final one at once. Answers whether
   the job is over. Locks the job.';

create or replace function api.media_job_wait(job_id uuid) returns api.reply
language sql volatile security definer set search_path = '' as $$
  update app.media_jobs n set status = 'queued', attempts = n.attempts - 1
    where n.id = media_job_wait.job_id and n.status = 'running';
  select internal.reply(200, 'true');
$$;
comment on function api.media_job_wait is
  'For the task media__job: takes an attempt back that did not begin, because too many images wait on the server. Locks
   the job.';

create or replace function api.media_job_succeed(job_id uuid, result_id uuid, result_version text, mime_type text,
                                                 ending text, size_bytes bigint, is_free boolean)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  j app.media_jobs;
  a app.media_assets;
begin
  -- the asset first, as whoever deletes it does
  select m.* into a
    from app.media_jobs n
    join app.media_assets m on m.id = n.asset_id
   where n.id = media_job_succeed.job_id
     for no key update of m;
  select n.* into j from app.media_jobs n where n.id = media_job_succeed.job_id and n.status = 'running' for update;
  if j.id is null or a.status <> 'committed' or a.object_version <> j.version then
    update app.media_jobs n
       set status = 'failed', finished_at = internal.now(), error_code = 'ASSET_GONE',
         error_message = 'The file was deleted or replaced.'
     where n.id = j.id;
    return internal.reply(200, 'false');
  end if;
  if j.is_thumbnail then
    update app.media_assets m set thumbnail_of = j.version, updated_at = internal.now() where m.id = a.id;
  else
    if media_job_succeed.is_free then
      perform internal.media_budget_check(media_job_succeed.size_bytes);
    end if;
    insert into app.media_assets
      (id, key, filename, mime_type, status, source, size_bytes, object_version, folder_id, uploaded_by, committed_at)
    values (
      media_job_succeed.result_id,
      concat(coalesce('user/' || a.uploaded_by, 'project'), '/',
             floor(extract(epoch from internal.now()) * 1000)::bigint, '_', media_job_succeed.result_id, '_',
             internal.media_safe_name(regexp_replace(a.filename, '\.[^./\\]*$', '')), '.', media_job_succeed.ending),
      left(regexp_replace(a.filename, '\.[^./\\]*$', ''), 240) || '.' || media_job_succeed.ending,
      media_job_succeed.mime_type, 'committed', 'job',
      media_job_succeed.size_bytes, media_job_succeed.result_version, a.folder_id, a.uploaded_by, internal.now());
  end if;
  update app.media_jobs n
     set status = 'succeeded', finished_at = internal.now(), error_code = null, error_message = null,
         result_asset_id = case when not j.is_thumbnail then media_job_succeed.result_id end
   where n.id = j.id;
  return internal.reply(200, 'true');
end $$;
comment on function api.media_job_succeed is
  'For the task media__job: notes the result of a job, whose bytes are stored: a thumbnail of its asset, or a new asset
   of the same owner. False when the asset has gone meanwhile. Refuses 402 FREE_TIER_LIMIT_REACHED. Locks the asset, the
   job, and in a free project the budget.';

create or replace function internal.purge__media_jobs(most int default 5000) returns bigint
language sql volatile security definer set search_path = '' as $$
  select internal.purge_rows('app.media_jobs', 't.finished_at < internal.now() - interval ''30 days''',
                             purge__media_jobs.most)
$$;
comment on function internal.purge__media_jobs is 'Daily: jobs that were over 30 days ago.';
