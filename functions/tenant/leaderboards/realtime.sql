-- The channel of each leaderboard. What it gets is looked at once a second, see realtime/boards.sql.

create or replace function internal.channel__leaderboard(item text, params jsonb, out name text, out scope json)
language plpgsql stable as $$
begin
  name := 'leaderboard:' || (internal.leaderboard_for_me(channel__leaderboard.item)).key;
  scope := '{"me": true}';
end $$;
comment on function internal.channel__leaderboard is 'leaderboard:<key>: who sees the board. Refuses 404 NOT_FOUND.';
