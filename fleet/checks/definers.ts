import type { Client } from 'pg'
import { escapeRegExp, type Finding, type Sources } from '#fleet/checks/finding.ts'

/** Bodies without their comments and strings, so that words in them do not count. */
export const bodies = `
  select p.oid, p.oid::regprocedure::text as name, p.proname, p.proargnames, p.proargmodes,
         regexp_replace(
           regexp_replace(regexp_replace(pg_get_functiondef(p.oid), '--[^\\n]*', '', 'g'), '/\\*.*?\\*/', '', 'g'),
           '''[^'']*''', '''''', 'g') as body
    from pg_proc p
    join pg_language l on l.oid = p.prolang and l.lanname in ('sql', 'plpgsql')
   where p.pronamespace::regnamespace::text in ('api', 'internal') and p.prokind = 'f'`

/** Policies do not apply inside such a function: what it shows and changes is whatever it looks up for whoever calls. */
export const definerRule = {
  name: 'security definer in api reads who calls before anything else, or is granted only to a role that no user of an app and no developer of another project has',
  find: `with recursive opening as (
           -- what runs first: the declarations, a lock and one statement, of a check that others call two; all of a function in SQL
           select b.oid, b.proname, k.is_internal,
                  case when l.lanname = 'sql' then b.text
                       when k.is_internal then substring(b.text || ';' from '^.*?\\mbegin\\M[^;]*;[^;]*;')
                       else coalesce(substring(b.text from '^(?:(?!\\mbegin\\M).)*begin\\s+perform (?:from [^;]* for (?:no key )?update|internal\\.\\w+_lock\\([^;]*\\));[^;]*;'),
                                     substring(b.text from '^.*?\\mbegin\\M[^;]*;')) end as text
             from (select s.oid, s.proname, regexp_replace(s.body, '^.*?(AS \\$function\\$|\\mRETURN\\M|BEGIN ATOMIC)', '') as text from (${bodies}) s) b
             join pg_proc p on p.oid = b.oid
             join pg_language l on l.oid = p.prolang
            cross join lateral (select p.pronamespace = 'internal'::regnamespace as is_internal) k
         ), calls as (
           select o.*, m.called[1]::name as called from opening o cross join lateral regexp_matches(o.text, '\\minternal\\.(\\w+)\\(', 'g') as m (called)
         ), asking (name) as (
           -- the last one calls functions that it finds by their names
           select unnest('{caller,user_id,developer_id,project_id,realtime_authorize}'::name[])
            union
           -- the trail notes who calls, and refuses nobody
           select c.proname from calls c join asking a on a.name = c.called where c.is_internal and c.proname !~ '^audit'
         )
         select p.oid::regprocedure::text as offender
           from pg_proc p
          where p.pronamespace = 'api'::regnamespace and p.prosecdef
            -- these say the same to whoever may execute them: what is public, or what the secret in their argument opens
            and p.oid::regprocedure::text not in ('api.groups_search(text,integer,integer)', 'api.media_public(uuid)', 'api.device_grant_get(text)')
            and coalesce((select string_agg(g.grantee::regrole::text, ' ') from aclexplode(p.proacl) g where g.grantee <> p.proowner)
                         <> all ('{app_worker,app_admin,app_auth,control_worker,control_auth}'::text[]), true)
            and not exists (select from calls c join asking a on a.name = c.called where c.oid = p.oid)`,
} as const

/** The rule, as warnings with the place of the function. */
export const checkDefiners = async (
  client: Client,
  kind: 'control' | 'tenant',
  sources: Sources,
): Promise<Finding[]> => {
  const { rows } = await client.query<{ offender: string }>(definerRule.find)
  return rows.map(({ offender }) => ({
    place: sources.find(
      new RegExp(`function ${escapeRegExp(offender.replace(/\(.*/s, ''))}\\s*\\(`),
      `functions/${kind}/`,
    ),
    severity: 'warning',
    problem: `${offender} is security definer, and does not read who calls before anything else.`,
    remedy:
      'Read internal.user_id(), internal.caller() or internal.developer_id(), or call a check that does, in the declarations or the first statement; or grant it to workers or administrators alone.',
  }))
}
