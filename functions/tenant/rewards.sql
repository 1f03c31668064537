-- Rewards: one object, one function, each given once. Every kind of reward belongs to its own area: a function
-- internal.reward__<kind>(app_user_id, part, source_type, source_id) that gives it and returns what it gave.
create or replace function internal.is_passing(state text) returns boolean
language sql immutable
return is_passing.state ~ '^(40|53|57|58|XX)' or is_passing.state in ('25P04', '55P03');
comment on function internal.is_passing is
  'Whether what failed with this SQLSTATE may do better later: locks, time, space, memory, disks. It says nothing of the
   reward, and is no reason to keep it from anybody.';

create or replace function internal.reward_part(kind text, app_user_id uuid, part jsonb, source_type text,
                                                source_id text)
returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  given jsonb;
begin
  if to_regprocedure(format('internal.%I(uuid,jsonb,text,text)', 'reward__' || reward_part.kind)) is null then
    return jsonb_build_object('given', false, 'reason', 'there is no such kind of reward here');
  end if;
  execute format('select internal.%I($1, $2, $3, $4)', 'reward__' || reward_part.kind)
     into given
    using reward_part.app_user_id, reward_part.part, reward_part.source_type, reward_part.source_id;
  return given;
exception when others then
  -- a part that cannot be given is recorded, and fails nothing
  if internal.is_passing(sqlstate) then
    raise;
  end if;
  return jsonb_build_object('given', false, 'reason', sqlerrm);
end $$;
comment on function internal.reward_part is
  'Gives one part of a reward, and answers what it gave, or why it was not given. Granted to nobody.';

create or replace function internal.reward_parts(kind text, app_user_ids uuid[], parts jsonb[], source_type text,
                                                 source_ids text[])
returns jsonb[]
language plpgsql volatile security definer set search_path = '' as $$
declare
  given jsonb[];
begin
  if to_regprocedure(format('internal.%I(uuid[],jsonb[],text,text[])', 'rewards__' || reward_parts.kind))
     is not null then
    begin
      execute format('select internal.%I($1, $2, $3, $4)', 'rewards__' || reward_parts.kind)
         into given
        using reward_parts.app_user_ids, reward_parts.parts, reward_parts.source_type, reward_parts.source_ids;
      return given;
    exception when others then
      if internal.is_passing(sqlstate) then
        raise;
      end if;
      -- one that fails keeps the others from nothing: each by itself
    end;
  end if;
  return array(select internal.reward_part(reward_parts.kind, w.id, w.part, reward_parts.source_type, w.source_id)
                 from unnest(reward_parts.app_user_ids, reward_parts.parts, reward_parts.source_ids) with ordinality
                        as w (id, part, source_id, n)
                order by w.n);
end $$;
comment on function internal.reward_parts is
  'Gives parts of one kind to many, together where the kind can, internal.rewards__<kind>, else one by one; the arrays
   are parallel, as is the answer. Granted to nobody.';

create or replace function internal.grant_rewards(app_user_ids uuid[], rewards jsonb[], source_type text,
                                                  source_ids text[])
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  due record;
begin
  for due in
    with granted as (
      insert into app.reward_grants (app_user_id, source_type, source_id, reward)
      select w.id, grant_rewards.source_type, w.source_id, coalesce(w.reward, '{}')
        from unnest(grant_rewards.app_user_ids, grant_rewards.rewards, grant_rewards.source_ids) with ordinality
               as w (id, reward, source_id, n)
       order by w.id, w.n
      on conflict on constraint reward_grants_once_per_source do nothing
      returning id, app_user_id, source_id, reward
    )
    select e.key as kind, array_agg(g.id order by g.app_user_id, g.id) as grants,
           array_agg(g.app_user_id order by g.app_user_id, g.id) as users,
           array_agg(e.value order by g.app_user_id, g.id) as parts,
           array_agg(g.source_id order by g.app_user_id, g.id) as sources
      from granted g
     -- what is no object has no parts, and fails nothing either
     cross join lateral jsonb_each(case when jsonb_typeof(g.reward) = 'object' then g.reward else '{}' end) e
     group by e.key
     order by e.key
  loop
    update app.reward_grants g
       set outcome = g.outcome || jsonb_build_object(due.kind, w.given)
      from unnest(due.grants, internal.reward_parts(due.kind, due.users, due.parts, grant_rewards.source_type,
                                                    due.sources)) as w (id, given)
     where g.id = w.id;
  end loop;
end $$;
comment on function internal.grant_rewards is
  'internal.grant_reward for many at once: the arrays are parallel. Kinds come one after the other, each to all who get
   it. The users must be locked. Granted to nobody.';

create or replace function internal.grant_reward(app_user_id uuid, reward jsonb, source_type text, source_id text)
returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  kind text;
  part jsonb;
  outcome jsonb := '{}';
  grant_id uuid;
begin
  insert into app.reward_grants (app_user_id, source_type, source_id, reward)
  values (grant_reward.app_user_id, grant_reward.source_type, grant_reward.source_id,
          coalesce(grant_reward.reward, '{}'))
  on conflict on constraint reward_grants_once_per_source do nothing
  returning id into grant_id;
  if grant_id is null then
    return null;
  end if;

  for kind, part in
    -- what is no object has no parts, and fails nothing either
    select e.key, e.value
      from jsonb_each(case when jsonb_typeof(grant_reward.reward) = 'object' then grant_reward.reward else '{}' end) e
     order by e.key
  loop
    outcome := outcome || jsonb_build_object(kind, internal.reward_part(
      kind, grant_reward.app_user_id, part, grant_reward.source_type, grant_reward.source_id));
  end loop;
  update app.reward_grants g set outcome = given_parts.outcome
    from (select outcome) as given_parts (outcome)
   where g.id = grant_id;
  return outcome;
end $$;
comment on function internal.grant_reward is
  'Gives a reward {xp, currencies, items, entitlements, achievement_key, freezes, badge, ...} once per user and source,
   in the transaction of its cause. Answers {kind: outcome}, or null when it was given before. Unknown kinds are kept
   and recorded as not given. Granted to nobody.';

create or replace function internal.rewards_in_both(survivor uuid, other uuid) returns setof app.reward_grants
language sql stable security definer set search_path = '' as $$
  select g.*
    from app.reward_grants g
   where g.app_user_id = rewards_in_both.other
     and exists (select from app.reward_grants mine
                  where (mine.app_user_id, mine.source_type, mine.source_id) = (rewards_in_both.survivor, g.source_type,
                                        g.source_id))
$$;
comment on function internal.rewards_in_both is
  'What one of two users who become one was rewarded with, where the other was by the same source: theirs once. By the
   record of the grant, which comes along with every merge, not by ledgers, which may hold it within a sum. Granted to
   nobody.';
