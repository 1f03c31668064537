// Writes the seed of throw-away mail domains from the package that keeps the list: npm run data:disposable-domains
import { writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { root } from '#server/root.ts'

const require = createRequire(import.meta.url)
const domains: string[] = require('disposable-email-domains')
const wildcards: string[] = require('disposable-email-domains/wildcard.json')
const valid = /^[a-z0-9.-]+\.[a-z0-9-]+$/
const all = [...new Set([...domains, ...wildcards].map((domain) => domain.toLowerCase()))]
  .filter((d) => valid.test(d))
  .sort()

await writeFile(
  join(root, 'sql/seeds/control/disposable_domains.sql'),
  `-- ${all.length} domains of throw-away inboxes, from the npm package disposable-email-domains (MIT). Made by
-- npm run data:disposable-domains; a domain that the package no longer lists is gone at the next load.
create temporary table listed on commit drop as
  select unnest(string_to_array(btrim($domains$
${all.join('\n')}
$domains$, e'\\n'), e'\\n')) as domain;
delete from app.disposable_domains d where d.domain not in (select l.domain from pg_temp.listed l);
insert into app.disposable_domains (domain)
  select l.domain from pg_temp.listed l where l.domain not in (select d.domain from app.disposable_domains d);
`,
)
