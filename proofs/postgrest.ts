// The suite of postgrest-js itself through the REST access: npm run proof:postgrest -- <checkout of supabase/postgrest-js>. Its tables stand in
// schema rest of a tenant, its requests get a server key on their way, and PostgREST has the settings that the suite was written for (rollbacks,
// aggregates, plans, two schemas). Everything between is the REST access's: routing, tokens, the pre-request function, what is passed on.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { restUri } from '#server/database/cluster.ts'
import { tenantName } from '#server/database/names.ts'
import { findPostgrest } from '#server/rest/binary.ts'
import { root } from '#server/root.ts'
import { createSecrets } from '#server/secrets.ts'
import { ask, createTestProject } from '#test/support/process.ts'
import { asAdmin, install } from '../bench/support/installation.ts'
import { say } from '../bench/support/results.ts'
import { report } from './support/page.ts'

const suite = process.argv[2]
const binary = findPostgrest(process.env['POSTGREST_BIN'])
if (!suite || !binary) {
  process.stderr.write(
    'npm run proof:postgrest -- <checkout of supabase/postgrest-js>, on a platform that has PostgREST.\n',
  )
  process.exit(2)
}
await access(join(suite, 'test/basic.test.ts'))

const folder = await mkdtemp(join(tmpdir(), 'trellis-postgrest-'))
const wrapper = join(folder, 'postgrest')
await writeFile(
  wrapper,
  `#!/bin/sh
export PGRST_DB_SCHEMAS=rest,personal PGRST_DB_TX_END=commit-allow-override PGRST_DB_AGGREGATES_ENABLED=true PGRST_DB_PLAN_ENABLED=true
unset PGRST_DB_MAX_ROWS
exec ${binary}\n`,
)
await chmod(wrapper, 0o755)

/** The suite's own tables, in the schema that the REST access shows as public; PostGIS is not here, and its column is text. */
const schemaOf = async (file: string) =>
  (await readFile(join(suite, 'test/db', file), 'utf8'))
    .replaceAll(/\bpublic\./g, 'rest.')
    .replaceAll(/^create (publication|schema extensions|extension).*;$/gim, '')
    .replaceAll('extensions.geometry(POINT, 4326)', 'text')

const installation = await install()
const server = await installation.serve({ POSTGREST_BIN: wrapper, GENERAL_RATE_LIMITS: 'off' })
const { projectId, developer, serverKey } = await createTestProject(server.url)
await ask(server.url, 'PATCH', `/v1/admin/projects/${projectId}`, { rest_enabled: true }, developer)
const database = tenantName('trellis', projectId)
const roles = 'app_server, app_rest'
/** Anew for each run: some of the tests leave rows. */
const load = async () =>
  asAdmin(
    installation.cluster,
    database,
    `drop schema if exists rest, personal cascade; create schema rest; set search_path = rest, extensions; set check_function_bodies = off;
   ${await schemaOf('00-schema.sql')}
   ${await schemaOf('01-dummy-data.sql')}
   grant usage on schema rest, personal to ${roles};
   grant all on all tables in schema rest, personal to ${roles};
   grant all on all sequences in schema rest, personal to ${roles};
   grant execute on all functions in schema rest, personal to ${roles};
   do $$
   declare
     one regprocedure;
   begin
     -- the REST access gives functions no search path: those of the suite name their tables alone
     for one in select p.oid from pg_proc p where p.pronamespace in ('rest'::regnamespace, 'personal'::regnamespace) and p.prokind = 'f' loop
       execute format('alter function %s set search_path = rest', one);
     end loop;
   end $$;`,
  )
await load()
say('the tables of the suite are there')

/** The same binary without the REST access, as the same role over the same tables. */
const bare = spawn(wrapper, {
  env: {
    ...process.env,
    PGRST_DB_URI: restUri(installation.cluster, database, createSecrets(installation.secretsKey)),
    PGRST_DB_ANON_ROLE: 'app_server',
    PGRST_DB_EXTRA_SEARCH_PATH: '',
    PGRST_LOG_LEVEL: 'crit',
    PGRST_SERVER_HOST: '127.0.0.1',
    PGRST_SERVER_PORT: '3002',
  },
  stdio: ['ignore', 'ignore', 'pipe'],
})
let said = ''
for await (const piece of bare.stderr) {
  said += String(piece)
  if (said.includes('Schema cache loaded')) break
}
let target = 'http://127.0.0.1:3002'

/** Adds the key that the suite does not have. */
const pass = async (request: IncomingMessage, response: ServerResponse) => {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece)
  const { host: _, connection: __, apikey: ___, 'content-length': ____, ...headers } = request.headers
  const answer = await fetch(`${target}${request.url}`, {
    method: request.method ?? 'GET',
    headers: { ...(headers as Record<string, string>), apikey: serverKey },
    ...(pieces.length > 0 ? { body: Buffer.concat(pieces) } : {}),
  })
  const body = Buffer.from(await answer.arrayBuffer())
  const kept = [...answer.headers].filter(
    ([name]) => !['content-encoding', 'transfer-encoding', 'content-length'].includes(name),
  )
  response.writeHead(answer.status, answer.statusText, kept.flat())
  response.end(body)
}
const proxy = createServer((request, response) => void pass(request, response).catch(() => response.destroy()))
proxy.listen(3000, '127.0.0.1')
await once(proxy, 'listening')

type Results = {
  readonly numTotalTests: number
  readonly numPassedTests: number
  readonly testResults: readonly {
    readonly name: string
    readonly message: string
    readonly assertionResults: readonly {
      readonly fullName: string
      readonly status: string
      readonly failureMessages: readonly string[]
    }[]
  }[]
}

const run = async (): Promise<Results> => {
  const config = join(folder, 'vitest.config.mjs')
  const output = join(folder, 'results.json')
  const settings = {
    root: suite,
    test: {
      globals: true,
      include: ['test/*.test.ts'],
      setupFiles: [join(root, 'proofs/support/jest.ts')],
      fileParallelism: false,
      snapshotFormat: { printBasicPrototype: true, escapeString: true },
      reporters: process.argv.includes('--verbose') ? ['default', 'json'] : ['json'],
      outputFile: { json: output },
      update: false,
    },
    // the suite is not installed: what it needs is here
    resolve: {
      alias: {
        '@supabase/node-fetch': join(root, 'proofs/support/fetch.ts'),
        'node-abort-controller': join(root, 'proofs/support/fetch.ts'),
        zod: join(root, 'node_modules/zod'),
      },
    },
    server: { fs: { strict: false } },
  }
  await writeFile(config, `export default ${JSON.stringify(settings)}\n`)
  const child = spawn(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--config', config], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, CI: '1' },
  })
  await once(child, 'exit')
  return JSON.parse(await readFile(output, 'utf8')) as Results
}

/** What the REST access means to do otherwise. */
const differences: Readonly<Record<string, string>> = {
  'embedded select with computed field explicit selection':
    'the REST access sets no search path, by which Postgres would find the function of a computed column',
}

const failuresOf = ({ testResults }: Results) =>
  testResults.flatMap(({ assertionResults }) =>
    assertionResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName),
  )
const listOf = (names: readonly string[]) => names.map((name) => `- ${name}`).join('\n')

try {
  const alone = await run()
  bare.kill('SIGKILL')
  await load()
  target = `${server.url}/rest/v1`
  const through = await run()
  const known = new Set(failuresOf(alone))
  const failed = failuresOf(through)
  const lost = failed.filter((name) => !known.has(name) && !Object.hasOwn(differences, name))
  await report(
    'proof:postgrest',
    {},
    [
      {
        text: `of the ${alone.numTotalTests} tests of postgrest-js ${alone.numPassedTests} pass against bare PostgREST over these tables, and ${through.numPassedTests} through the REST access`,
        holds: through.numTotalTests === alone.numTotalTests && through.numPassedTests > 0,
      },
      {
        text: `no test passes without the REST access that fails through it, but ${Object.entries(differences)
          .map(([name, why]) => `"${name}": ${why}`)
          .join('; ')}`,
        holds: lost.length === 0,
      },
    ],
    [
      ...(lost.length > 0 ? [`Through the REST access alone fail:\n\n${listOf(lost)}`] : []),
      `Both ways fail (some ask a PostgREST 13 at port 3001, or PostGIS, or name the schema public in their snapshots):\n\n${listOf(failed.filter((name) => known.has(name)))}`,
    ].join('\n\n'),
  )
} finally {
  proxy.close()
  bare.kill('SIGKILL')
  await installation.end()
  await rm(folder, { recursive: true, force: true })
}
