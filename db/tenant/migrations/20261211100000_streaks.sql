-- migrate:up
-- serves the users of a streak by status: those who are broken are the few, or the many, whose streak was last covered before a date. A first
-- qualification of a period changes it, as it does the index of the next check; further ones of the same period stay heap-only updates
create index user_streaks_covered on app.user_streaks (streak_definition_id, covered_through) where first_qualified_at is not null;

-- migrate:down
drop index app.user_streaks_covered;
