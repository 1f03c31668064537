// A DBA's db:reload, from a copy of this program in which a function or a policy was changed.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, cp, mkdtemp, readdir, rm, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from '#server/database/files.ts'
import type { Installation } from './installation.ts'

export type Reloaded = { readonly seconds: number; readonly said: string }

const folders = ['server', 'workers', 'scripts', 'sql', 'db', 'functions', 'policies', 'package.json']

/** A copy of the program whose functions and policies of tenants differ in a comment: those of one area, or all. */
export const changedProgram = async (
  which: 'one area' | 'all',
): Promise<{ folder: string; remove(): Promise<void> }> => {
  const folder = await mkdtemp(join(tmpdir(), 'trellis-reload-'))
  for (const name of folders) await cp(join(root, name), join(folder, name), { recursive: true })
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  for (const kind of ['functions', 'policies']) {
    const base = join(folder, kind, 'tenant')
    for (const name of await readdir(base, { recursive: true })) {
      const isWanted = name.endsWith('.sql') && (which === 'all' || name === 'users.sql')
      if (isWanted && (await stat(join(base, name))).isFile()) await appendFile(join(base, name), '\n-- changed\n')
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
