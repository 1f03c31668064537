-- Mail domains of throw-away inboxes, from the npm package disposable-email-domains (MIT): the loader puts the text of
-- a file in place of its name. A domain that the package no longer lists is gone at the next load.
create temporary table listed on commit drop as
  select json_array_elements_text($list$npm:disposable-email-domains/index.json$list$) as domain;
insert into pg_temp.listed (domain)
  select w from json_array_elements_text($list$npm:disposable-email-domains/wildcard.json$list$) as w
   where w not in (select l.domain from pg_temp.listed l);
delete from app.disposable_domains d where d.domain not in (select l.domain from pg_temp.listed l);
insert into app.disposable_domains (domain)
  select l.domain from pg_temp.listed l where l.domain not in (select d.domain from app.disposable_domains d);
