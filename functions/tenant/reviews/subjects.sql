-- What can be reviewed: catalog items, content, users, rows of collections, and the app itself.
create or replace function internal.review_named_subject(subject_type text, subject_id text, out id uuid,
                                                         out owner_id uuid)
language plpgsql volatile security definer set search_path = '' as $$
declare
  entry app.content_entries;
begin
  case review_named_subject.subject_type
    when 'app' then
      id := internal.project_id();
      if id is distinct from coalesce(internal.as_uuid(review_named_subject.subject_id),
                                      case when review_named_subject.subject_id is null then id end) then
        id := null;
      end if;
    when 'catalog_item' then
      select i.id into id from app.catalog_items i
       where internal.is_id_or_key(i.id, i.key, review_named_subject.subject_id) and i.is_active;
    when 'content' then
      entry := internal.content_at(review_named_subject.subject_id);
      if entry.id is not null and internal.content_is_open(entry)
         and exists (select from app.content_locales l cross join lateral internal.content_state(l) s
                      where l.entry_id = entry.id and s.live_version is not null) then
        id := entry.id;
      end if;
    when 'user' then
      select u.id, u.id into id, owner_id from app.users u
       where u.id = internal.as_uuid(review_named_subject.subject_id) and not internal.is_blocked(u.id);
    else
      null;
  end case;
end $$;
comment on function internal.review_named_subject is
  'The id of a subject that the caller may see, of another type than a row of a collection, by its id or key; and the
   user whose it is. Null where there is none.';

create or replace function internal.review_subject(subject_type text, subject_id text,
                                                   code text default 'VALIDATION_ERROR', out id uuid,
                                                   out owner_id uuid)
language plpgsql volatile as $$
declare
  collection constant text := substr(review_subject.subject_type, 12);
begin
  if review_subject.subject_id is null and review_subject.subject_type <> 'app' then
    perform internal.invalid('subject_id', 'is required', review_subject.code);
  elsif review_subject.subject_type like 'collection:%' then
    -- under the policies of the collection: a row that the caller cannot read is no subject
    if exists (select from app.collections c where c.name = collection) then
      execute format('select t.id, t.user_id from collections.%I t where t.id = $1 and t.deleted_at is null',
                     collection)
         into id, owner_id using internal.as_uuid(review_subject.subject_id);
    end if;
  else
    select s.id, s.owner_id into id, owner_id
      from internal.review_named_subject(review_subject.subject_type, review_subject.subject_id) s;
  end if;
  perform internal.check_found(id is not null, 'subject', 'SUBJECT_NOT_FOUND');
end $$;
comment on function internal.review_subject is
  'The subject that a request names, and the user whose it is. Refuses 404 SUBJECT_NOT_FOUND for one that the caller may
   not see, and 400 with the code without a subject_id.';

create or replace function internal.review_is_eligible(item_id uuid, app_user_id uuid) returns boolean
language sql stable security definer set search_path = '' as $$
  -- the ledger, not the stacks: what is used up was bought all the same
  select exists (select from app.inventory_ledger_rows l
                  where l.catalog_item_id = review_is_eligible.item_id
                    and l.app_user_id = review_is_eligible.app_user_id
                    and l.change > 0 and l.kind in ('granted', 'merged')
                    and not (l.source_type = 'purchase'
                             and exists (select from app.purchases p
                                          where p.id = internal.as_uuid(l.source_id) and p.status = 'refunded')))
      or exists (select from app.purchases p
                   join app.store_offers o on o.id = p.offer_id
                  where p.app_user_id = review_is_eligible.app_user_id
                    and o.catalog_item_id = review_is_eligible.item_id and p.status = 'completed')
$$;
comment on function internal.review_is_eligible is
  'Whether a user was given a catalog item, from any source and even if it is used up, or bought it in a store; what was
   refunded does not count. Granted to nobody.';

create or replace function internal.review_owner_check(subject_type text, owner_id uuid) returns void
language plpgsql stable as $$
begin
  if review_owner_check.owner_id = internal.user_id() then
    perform internal.invalid('subject_id', case review_owner_check.subject_type
                                             when 'user' then 'must be another user'
                                             else 'must be a row of another user' end);
  end if;
end $$;
comment on function internal.review_owner_check is
  'Refuses 400 VALIDATION_ERROR for a review of oneself, or of a row of one''s own.';
