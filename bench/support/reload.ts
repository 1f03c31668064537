// A DBA's db:reload, from a copy of this program in which a function or a policy was changed.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, cp, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connectAdmin } from '#server/database/cluster.ts'
import { readProgram, root } from '#server/database/files.ts'
import { loadProgram } from '#server/database/load.ts'
import type { Installation } from './installation.ts'
import { figure, table } from './numbers.ts'

export type Reloaded = { readonly seconds: number; readonly said: string }

const folders = ['server', 'workers', 'scripts', 'sql', 'db', 'functions', 'policies', 'package.json']

export type Copy = { readonly folder: string; remove(): Promise<void> }

/** A copy of the program, in which the functions and policies of tenants may differ in a comment: one area's, or all. */
export const copyProgram = async (changed: 'nothing' | 'one area' | 'all'): Promise<Copy> => {
  const folder = await mkdtemp(join(tmpdir(), 'trellis-reload-'))
  for (const name of folders) await cp(join(root, name), join(folder, name), { recursive: true })
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  for (const kind of ['functions', 'policies']) {
    const base = join(folder, kind, 'tenant')
    for (const name of await readdir(base, { recursive: true })) {
      const isWanted = changed === 'all' || (changed === 'one area' && name === 'settings.sql')
      if (isWanted && name.endsWith('.sql')) await appendFile(join(base, name), '\n-- changed\n')
    }
  }
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) }
}

/** `npm run db:reload` of the program in this folder: seconds from its start to its end. */
export const reload = async (folder: string, { dataDir, secretsKey }: Installation): Promise<Reloaded> => {
  const began = performance.now()
  const child = spawn(process.execPath, [join(folder, 'scripts/database.ts'), 'reload'], {
    cwd: folder,
    env: { PATH: process.env['PATH'], DATA_DIR: dataDir, SECRETS_KEY: secretsKey },
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      said += chunk
    })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`db:reload ended with ${code}: ${said}`)
  return { seconds: (performance.now() - began) / 1000, said }
}

/** Which statements take the time when this program is applied to one tenant that nobody uses. */
export const profileReload = async ({ cluster }: Installation, database: string, folder: string): Promise<string> => {
  const client = await connectAdmin(cluster, database)
  const sums = new Map<string, { milliseconds: number; times: number }>()
  const query = client.query.bind(client) as (text: string, values?: unknown[]) => Promise<unknown>
  const timed = async (text: string, values?: unknown[]) => {
    const began = performance.now()
    try {
      return await query(text, values)
    } finally {
      // files begin with a comment of many lines: a statement is known by its first words
      const name = text.trim().replaceAll(/\s+/g, ' ').slice(0, 60)
      const sum = sums.get(name) ?? { milliseconds: 0, times: 0 }
      sums.set(name, { milliseconds: sum.milliseconds + performance.now() - began, times: sum.times + 1 })
    }
  }
  const began = performance.now()
  try {
    await loadProgram(Object.assign(client, { query: timed }), await readProgram('tenant', folder))
  } finally {
    await client.end()
  }
  const rows = [...sums].sort((a, b) => b[1].milliseconds - a[1].milliseconds).slice(0, 10)
  return table(
    [`statement, of ${figure(performance.now() - began)} ms for one tenant`, 'times', 'ms'],
    rows.map(([name, { times, milliseconds }]) => [`\`${name}\``, String(times), figure(milliseconds)]),
  )
}
