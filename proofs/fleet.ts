// 200 tenants are brought to a new version while some of them are in use; one of them is broken on purpose, is named, mended and
// brought after the others.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { tenantName } from '#server/database/names.ts'
import { ask } from '#test/support/process.ts'
import { createTenants, signUp } from '../bench/support/fleet.ts'
import { address, asAdmin, install, signIn } from '../bench/support/installation.ts'
import { copyProgram } from '../bench/support/reload.ts'
import { say } from '../bench/support/results.ts'
import { percentile, report } from './support/page.ts'

const count = 200
const busy = 10

const installation = await install()
const server = await installation.serve({ WORKER: 'inline' })
const developer = await signUp(server)
const tenants = await createTenants(server, developer, count)
say(`${count} tenants are ready`)

// the next version: a table, a function that uses it, a policy
const next = await copyProgram('one area')
const version = '29991231235959'
await writeFile(
  join(next.folder, `db/tenant/migrations/${version}_proofs.sql`),
  `-- migrate:up
create table app.proofs (id uuid primary key default internal.new_id(), note text not null default '');
-- migrate:down
drop table app.proofs;
`,
)
await writeFile(
  join(next.folder, 'functions/tenant/proofs.sql'),
  `create or replace function internal.proofs_counted() returns bigint language sql stable as $$ select count(*) from app.proofs $$;
comment on function internal.proofs_counted is 'How many proofs there are.';
`,
)
await writeFile(join(next.folder, 'policies/tenant/proofs.sql'), 'alter table app.proofs enable row level security;\n')

// what a DBA's own hand may have left: a table of the same name
const broken = tenants[Math.floor(count / 2)]?.projectId ?? ''
const brokenDatabase = tenantName('trellis', broken)
await asAdmin(installation.cluster, brokenDatabase, 'create table app.proofs (mine int)')

const run = async (command: string) => {
  const began = performance.now()
  const child = spawn(process.execPath, [join(next.folder, 'scripts/database.ts'), command], {
    cwd: next.folder,
    env: { PATH: process.env['PATH'], DATA_DIR: installation.dataDir, SECRETS_KEY: installation.secretsKey },
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      said += chunk
    })
  const [code] = await once(child, 'exit')
  return { code: code as number, said, seconds: (performance.now() - began) / 1000 }
}

let running = true
const statuses = new Map<string, number>()
const times: number[] = []
const inUse = [...tenants.slice(0, busy - 1), ...tenants.filter(({ projectId }) => projectId === broken)]
const load = inUse.map(async ({ key }) => {
  const { headers } = await signIn(server.url, key)
  for (let turn = 0; running; turn += 1) {
    const began = performance.now()
    const answer = await (turn % 2
      ? ask(server.url, 'GET', '/v1/client/users/me', undefined, { ...headers, ...address() })
      : ask(server.url, 'POST', '/v1/client/events', { event_name: 'used' }, { ...headers, ...address() })
    ).catch(() => null)
    times.push(performance.now() - began)
    const status = answer ? String(answer.status) : 'no answer'
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    await sleep(50)
  }
})
await sleep(1000)

const migrated = await run('migrate')
say(migrated.said)
const status = await run('status')
say(status.said)
const current = async () => {
  const behind = await asAdmin<{ count: number }>(
    installation.cluster,
    'trellis_control',
    `select count(*)::int as count from app.tenants where schema_version = $1`,
    [version],
  )
  return behind[0]?.count ?? 0
}
const first = await current()

await asAdmin(installation.cluster, brokenDatabase, 'drop table app.proofs')
const again = await run('migrate')
const second = await current()
running = false
await Promise.all(load)

await next.remove()
await installation.end()
const seen = [...statuses].sort().map(([code, times]) => `${times} times ${code}`)
const failed = [...statuses].filter(([code]) => !code.startsWith('2')).length
await report('proof:fleet', { Postgres: installation.postgresVersion }, [
  {
    text: `\`db:migrate\` brings ${first} of ${count} tenants to the new version in ${migrated.seconds.toFixed(1)} s and ends with ${migrated.code}`,
    holds: first === count - 1 && migrated.code === 1,
  },
  {
    text: 'it names the one that failed and why, and so does `db:status`',
    holds: [migrated, status].every(({ said }) => said.includes(brokenDatabase) && said.includes('already exists')),
  },
  {
    text: `mended and run again, the last one follows in ${again.seconds.toFixed(1)} s, and it ends with ${again.code}`,
    holds: second === count && again.code === 0,
  },
  {
    text: `meanwhile ${busy} tenants, the broken one among them, answered ${seen.join(', ')}; ${percentile(times, 0.5).toFixed(1)} ms in the median, ${Math.max(...times).toFixed(0)} ms at most`,
    holds: failed === 0,
  },
])
process.exit()
