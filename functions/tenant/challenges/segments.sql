-- Challenges as a source of segment rules.
create or replace function internal.segment_source__challenge(leaf jsonb, place text, parameter text)
returns internal.segment_operand
language plpgsql volatile as $$
declare
  value constant jsonb := segment_source__challenge.leaf -> 'value';
  -- a number, or a list of them, is a progress; anything else a status
  asks_for_progress constant boolean := coalesce(jsonb_typeof(case when jsonb_typeof(value) = 'array' then value -> 0
                                                                   else value end) = 'number', false);
begin
  perform internal.segment_key_check(segment_source__challenge.leaf, segment_source__challenge.place,
    exists (select from app.challenges c where c.id = internal.as_uuid(segment_source__challenge.leaf ->> 'key')),
    'must be the id of a challenge');
  return internal.segment_operand(
    case when asks_for_progress then 'numeric' else 'text' end,
    missing => case when asks_for_progress then '0' else '''none''' end,
    members => format(
      'select p.app_user_id, %s as value from app.challenge_participants p join app.challenges c on c.id = '
      'p.challenge_id where p.challenge_id = (%s ->> ''key'')::uuid',
      case when asks_for_progress then 'p.progress' else 'internal.participant_status(p, c)' end,
      segment_source__challenge.parameter));
end $$;
comment on function internal.segment_source__challenge is
  'Leaves on a user''s status in a challenge, by its id: the status in_progress, completed, expired, left or none;
   compared with a number, the progress.';
