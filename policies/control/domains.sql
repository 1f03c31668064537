alter table app.domains enable row level security;

create policy "developers read domains of their own projects" on app.domains for select to control_developer
  using (project_id in (select p.id from app.projects p where p.developer_id = (select internal.developer_id())));

grant select on app.domains to control_developer;
grant execute on function internal.domain_sends, internal.has_function_domains to control_developer;
