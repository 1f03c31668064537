import { expect, test } from 'vitest'
import { controlName } from '#server/database/names.ts'
import { configuredBilling } from '#test/support/billing.ts'
import { startHarness } from '#test/support/harness.ts'
import { callRoute, createCast, nameOf } from '#test/support/routes.ts'

/**
 * What every route does when its function fails: the failure code that it declares, and nothing of the inside. Each function is
 * replaced by one that raises, in a server and a project of this file's own.
 */
const harness = await startHarness({
  env: { LOG_LEVEL: 'silent', GITHUB_CLIENT_ID: 'client', GITHUB_CLIENT_SECRET: 'a secret' },
  providers: { billing: configuredBilling() },
})
const cast = await createCast(harness)
const { project } = cast

const routes = harness.running.areas.flatMap((area) => area.routes).filter((route) => route.failure)

/** Functions that come before a route's own. */
const credentials = [
  'edge_key',
  'edge_project',
  'developer_session_check',
  'auth_session',
  'user_exists',
  'rate_limit_take',
  'rate_limit_give_back',
]

const broken = `returns api.reply language plpgsql volatile as $broken$ begin raise exception 'secret detail of %', 'the inside'; end $broken$`

test('every route answers its own failure code and says nothing of the inside', { timeout: 180_000 }, async () => {
  const breakAll = `
    do $break$
    declare f record;
    begin
      for f in select p.oid::regprocedure::text as name from pg_proc p where p.pronamespace = 'api'::regnamespace
                 and p.proname not in (${credentials.map((name) => `'${name}'`).join(', ')})
      loop
        execute 'alter function ' || f.name || ' rename to broken_' || md5(f.name);
      end loop;
    end $break$`
  const functions = async (run: typeof project.sql) =>
    (await run(`select p.proname as name, pg_get_function_identity_arguments(p.oid) as args, pg_get_function_arguments(p.oid) as signature,
                       array(select g.grantee from ops.acl g where g.kind = 'function' and g.identity = p.oid::regprocedure::text) as roles
                  from pg_proc p where p.pronamespace = 'api'::regnamespace and p.prokind = 'f'`)) as {
      name: string
      args: string
      signature: string
      roles: string[]
    }[]
  const kept = new Set(credentials)
  for (const run of [project.sql, harness.control]) {
    const all = (await functions(run)).filter(({ name }) => !kept.has(name))
    await run(breakAll)
    for (const { name, signature, roles } of all) {
      await run(`create function api."${name}"(${signature}) ${broken}`)
      if (roles.length > 0) await run(`grant execute on function api."${name}" to ${[...new Set(roles)].join(', ')}`)
    }
  }
  expect(harness.running.services.control.database).toBe(controlName(harness.prefix))

  const wrong: string[] = []
  for (const route of routes) {
    const signature = nameOf(route)
    const answer = await callRoute(route, cast)
    if (answer.status !== 500 || answer.error?.code !== route.failure)
      wrong.push(`${signature}: ${answer.status} ${answer.text.slice(0, 120)}`)
    if (
      /secret|inside|plpgsql|select/i.test(
        answer.error?.message.replace('Something went wrong here. The request id helps us find it.', '') ?? '',
      )
    ) {
      wrong.push(`${signature} tells: ${answer.text}`)
    }
  }
  expect(wrong).toEqual([])
})
