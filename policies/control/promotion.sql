alter table app.promotion_plans enable row level security;

create policy "members read plans of their projects" on app.promotion_plans for select to control_developer
  using (project_id in (select p.id from app.projects p
                         where p.organization_id = any ((select internal.organization_ids())::uuid[])));

grant select on app.promotion_plans to control_developer;
grant execute on function internal.promotion_remember, internal.promotion_record, api.promotion_planned,
  api.promotion_find, api.promotion_record to control_developer;
