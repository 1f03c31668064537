-- A sample shows only rows that the role may see.
grant execute on function internal.planned_rows, internal.users_afforded, internal.users_estimate,
  internal.users_sampled, internal.sample_margin(bigint, int[], boolean[]),
  internal.sample_margin(bigint, int[], numeric[]) to app_admin;
