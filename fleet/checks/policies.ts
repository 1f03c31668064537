import type { Client } from 'pg'
import type { Finding, Sources } from '#fleet/checks/finding.ts'

type Rule = { readonly name: string; readonly find: string; readonly remedy: string }

/** What is slow or confusing in a policy and still works: queries that answer `offender`, `"name" on table` or what else names it. */
export const policyRules = {
  settings: {
    name: 'a policy reads settings inside (select ...)',
    find: `select p.polname || ' on ' || p.polrelid::regclass as offender
             from pg_policy p
            where concat_ws(' ', pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
                  ~ '(?<!SELECT )(internal\\.[a-z_]+_id\\(|internal\\.caller\\(|current_setting\\()'`,
    remedy: 'Write (select internal.user_id()): Postgres then asks once, and not for each row.',
  },
  permissive: {
    name: 'one permissive policy for each command and role',
    find: `with each as (
             select p.polrelid, p.polname, c.cmd, r.role
               from pg_policy p
              cross join lateral unnest(p.polroles) as r (role)
              cross join lateral unnest(case p.polcmd when '*' then array['r', 'a', 'w', 'd']::"char"[] else array[p.polcmd] end) as c (cmd)
              where p.polpermissive)
           select e.polrelid::regclass || ' ' || e.cmd::text || ' ' || e.role::regrole as offender
             from each e group by e.polrelid, e.cmd, e.role having count(*) > 1`,
    remedy: 'Join the two with or: either alone lets a row through.',
  },
} as const satisfies Readonly<Record<string, Rule>>

/** The rules of policies, as warnings: `npm run check:sql` ends with 1, and no reload is refused. */
export const checkPolicyRules = async (
  client: Client,
  kind: 'control' | 'tenant',
  sources: Sources,
): Promise<Finding[]> => {
  const findings: Finding[] = []
  for (const { name, find, remedy } of Object.values(policyRules)) {
    const { rows } = await client.query<{ offender: string }>(find)
    for (const { offender } of rows)
      findings.push({
        place: sources.find(`"${offender.split(' on ')[0]}"`, `policies/${kind}/`),
        severity: 'warning',
        problem: `${offender}: ${name}.`,
        remedy,
      })
  }
  return findings
}
