-- Rewards: one object, one function, each given once. Every kind of reward belongs to its own area: a function
-- internal.reward__<kind>(app_user_id, part, source_type, source_id) that gives it and returns what it gave.
create or replace function internal.is_passing(state text) returns boolean
language sql immutable
return is_passing.state ~ '^(40|53|57|58|XX)' or is_passing.state in ('25P04', '55P03');
comment on function internal.is_passing is
  'Whether what failed with this SQLSTATE may do better later: locks, time, space, memory, disks. It says nothing of the
   reward, and is no reason to keep it from anybody.';

create or replace function internal.grant_reward(app_user_id uuid, reward jsonb, source_type text, source_id text)
returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  kind text;
  part jsonb;
  outcome jsonb := '{}';
  given jsonb;
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
    if to_regprocedure(format('internal.%I(uuid,jsonb,text,text)', 'reward__' || kind)) is null then
      given := jsonb_build_object('given', false, 'reason', 'there is no such kind of reward here');
    else
      begin
        execute format('select internal.%I($1, $2, $3, $4)', 'reward__' || kind)
           into given
          using grant_reward.app_user_id, part, grant_reward.source_type, grant_reward.source_id;
      exception when others then
        -- a part that cannot be given is recorded, and fails nothing
        if internal.is_passing(sqlstate) then
          raise;
        end if;
        given := jsonb_build_object('given', false, 'reason', sqlerrm);
      end;
    end if;
    outcome := outcome || jsonb_build_object(kind, given);
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
