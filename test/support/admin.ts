import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, inject } from 'vitest'
import { root } from '#server/root.ts'
import type { Harness } from '#test/support/harness.ts'
import { programEnvironment } from '#test/support/process.ts'

export type Ran = { readonly code: number; readonly out: string; readonly err: string }

/** A script of ours as a process of its own, to its end. */
export const runScript = (file: string, args: readonly string[], env: Record<string, string>, cwd = root) =>
  new Promise<Ran>((resolve) => {
    execFile(
      process.execPath,
      [join(root, file), ...args],
      { env: { ...programEnvironment, ...env }, cwd },
      (error, out, err) => resolve({ code: error ? Number(error.code) : 0, out, err }),
    )
  })

/** `npm run admin` on the databases of a harness. */
export const adminOf = async (harness: Harness) => {
  const folder = await mkdtemp(join(tmpdir(), 'trellis-admin-'))
  afterAll(() => rm(folder, { recursive: true, force: true }))
  const here = {
    DATABASE_URL: inject('dsn'),
    DATABASE_PREFIX: harness.prefix,
    SECRETS_KEY: inject('secretsKey'),
    DATA_DIR: folder,
  }
  const admin = (args: readonly string[], env: Record<string, string> = {}) =>
    runScript('scripts/admin.ts', args, { ...here, ...env }, folder)
  return {
    folder,
    admin,
    /** What a command that succeeds prints. */
    async ok(...args: string[]) {
      const ran = await admin(args)
      expect(ran.code, ran.err).toBe(0)
      return ran.out
    },
    async json<T = any>(...args: string[]): Promise<T> {
      const ran = await admin([...args, '--json'])
      expect(ran.err).toBe('')
      return JSON.parse(ran.out)
    },
  }
}
