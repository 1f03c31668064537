// A DBA's db:reload, from a copy of this program in which a function or a policy was changed.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { knownOf } from '#fleet/load/checksum.ts'
import { readProgram } from '#fleet/load/files.ts'
import { migrateDatabase } from '#fleet/load/migrate.ts'
import { createLoader } from '#fleet/load/replay.ts'
import { connectAdmin } from '#server/database/cluster.ts'
import { root } from '#server/root.ts'
import { postgresCpu } from './cpu.ts'
import type { Installation } from './installation.ts'
import { figure, table } from './numbers.ts'

export type Reloaded = { readonly seconds: number; readonly postgresSeconds: number; readonly said: string }

const folders = ['server', 'fleet', 'workers', 'scripts', 'sql', 'db', 'functions', 'policies', 'package.json']

export type Copy = { readonly folder: string; remove(): Promise<void> }

/**
 * What differs in a copy: a comment at the end of the files of one area or of all, a line in the body of every function and the text of every
 * policy, one policy, or a migration with the functions and policies of its area.
 */
export type Changed = 'nothing' | 'one area' | 'every file' | 'every definition' | 'one policy' | 'a migration'

const comment = '\n-- changed\n'

const edits: Readonly<Record<Changed, (name: string, text: string) => string>> = {
  nothing: (_name, text) => text,
  'one area': (name, text) => (name === 'settings.sql' ? text + comment : text),
  'every file': (_name, text) => text + comment,
  'every definition': (_name, text) =>
    text
      .replaceAll(/\bas \$\$\n/g, 'as $$$$\n-- changed\n')
      .replaceAll(/^( *using \()/gm, '$1true and ')
      .replaceAll(/^( *with check \()/gm, '$1true and ') + comment,
  'one policy': (name, text) => (name === 'push_tokens.sql' ? text.replace('using (', 'using (true and ') : text),
  'a migration': (name, text) => (name === 'push_tokens.sql' ? text + comment : text),
}

/** A copy of the program in which the functions and policies of tenants differ. */
export const copyProgram = async (changed: Changed): Promise<Copy> => {
  const folder = await mkdtemp(join(tmpdir(), 'trellis-reload-'))
  for (const name of folders) await cp(join(root, name), join(folder, name), { recursive: true })
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  for (const kind of ['functions', 'policies']) {
    const base = join(folder, kind, 'tenant')
    for (const name of (await readdir(base, { recursive: true })).filter((one) => one.endsWith('.sql'))) {
      const text = await readFile(join(base, name), 'utf8')
      await writeFile(join(base, name), edits[changed](name, text))
    }
  }
  if (changed === 'a migration')
    await writeFile(
      join(folder, 'db/tenant/migrations/20991231000000_push_tokens.sql'),
      '-- migrate:up\nalter table app.push_tokens add column bench text;\n\n-- migrate:down\nalter table app.push_tokens drop column bench;\n',
    )
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) }
}

/** `npm run db:reload`, or db:migrate, of the program in this folder: seconds from its start to its end, and what Postgres worked meanwhile. */
export const reload = async (
  folder: string,
  { dataDir, secretsKey, postmaster }: Installation,
  command: 'reload' | 'migrate' = 'reload',
): Promise<Reloaded> => {
  const began = performance.now()
  const cpu = postgresCpu(postmaster)
  const child = spawn(process.execPath, [join(folder, 'scripts/database.ts'), command], {
    cwd: folder,
    env: { PATH: process.env['PATH'], DATA_DIR: dataDir, SECRETS_KEY: secretsKey },
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      said += chunk
    })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`db:${command} ended with ${code}: ${said}`)
  const seconds = (performance.now() - began) / 1000
  return { seconds, postgresSeconds: (postgresCpu(postmaster) - cpu) / 1e6, said }
}

/** Which statements take the time when this program is applied to a tenant that nobody uses, after another one. */
export const profileReload = async (
  { cluster }: Installation,
  databases: readonly [string, string],
  folder: string,
): Promise<string> => {
  const loader = createLoader()
  const program = await readProgram('tenant', folder)
  // the first is loaded file by file; the profile is of the second, as of all others
  await migrateDatabase(cluster, databases[0], program, { loader })
  const client = await connectAdmin(cluster, databases[1])
  const sums = new Map<string, { milliseconds: number; times: number }>()
  const query = client.query.bind(client) as (text: string, values?: unknown[]) => Promise<unknown>
  const timed = async (text: string, values?: unknown[]) => {
    const began = performance.now()
    try {
      return await query(text, values)
    } finally {
      // files begin with a comment of many lines: a statement is known by its first words
      const isDifference = text.startsWith('do $locks$')
      const name = isDifference
        ? `the difference: locks, and ${text.split(';\n').length} lines`
        : text.trim().replaceAll(/\s+/g, ' ').slice(0, 60)
      const sum = sums.get(name) ?? { milliseconds: 0, times: 0 }
      sums.set(name, { milliseconds: sum.milliseconds + performance.now() - began, times: sum.times + 1 })
    }
  }
  const began = performance.now()
  try {
    const watched = Object.assign(client, { query: timed })
    const known = await knownOf(watched)
    if (known) await loader.load(watched, program, { ...known, path: `${cluster.dsn} ` })
  } finally {
    await client.end()
  }
  const rows = [...sums].sort((a, b) => b[1].milliseconds - a[1].milliseconds).slice(0, 10)
  return table(
    [`statement, of ${figure(performance.now() - began)} ms for one tenant`, 'times', 'ms'],
    rows.map(([name, { times, milliseconds }]) => [`\`${name}\``, String(times), figure(milliseconds)]),
  )
}
