import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import type { TestProject } from 'vitest/node'
import { readConfig } from '#server/config.ts'
import { startEmbeddedPostgres } from '#server/database/embedded.ts'
import { loadAreas } from '#server/http/areas.ts'
import { lay, prepare } from '#server/start.ts'
import { unseenCodes } from '#test/support/declared.ts'
import { beginRun } from '#test/support/run.ts'

declare module 'vitest' {
  interface ProvidedContext {
    dsn: string
    socketDirectory: string | null
    secretsKey: string
    seenFile: string
  }
}

/**
 * One Postgres for the whole run: embedded, or the server of DATABASE_URL. Its control database and template are made once, and
 * every test file copies them under a name of its own. What a test leaves behind, a process above all, fails the run.
 */
export default async (project: TestProject) => {
  const run = await beginRun()
  const folder = join(run.folder, 'base')
  await mkdir(folder)
  const secretsKey = process.env['SECRETS_KEY'] ?? Buffer.alloc(32, 7).toString('base64')
  const log = pino({ level: 'warn' })
  const given = process.env['DATABASE_URL']
  const embedded = given
    ? undefined
    : await startEmbeddedPostgres({
        dataDir: folder,
        superuserPassword: 'test',
        sync: false,
        maxConnections: 600,
        log: () => undefined,
      })
  const dsn = given ?? embedded?.url ?? ''
  const config = readConfig({
    DATABASE_URL: dsn,
    SECRETS_KEY: secretsKey,
    DATA_DIR: folder,
    DATABASE_PREFIX: 'trellis_base',
  })
  const foundation = await lay(config, log)
  const socketDirectory = embedded?.socketDirectory ?? null
  await prepare({ ...foundation, postgres: { ...foundation.postgres, socketDirectory } })

  const seenFile = join(folder, 'seen.jsonl')
  project.provide('dsn', dsn)
  project.provide('socketDirectory', socketDirectory)
  project.provide('secretsKey', secretsKey)
  project.provide('seenFile', seenFile)

  return async () => {
    const seen = await readFile(seenFile, 'utf8').catch(() => '')
    await embedded?.stop()
    const survivors = await run.survivors()
    await run.end()
    if (survivors.length > 0) {
      const lines = survivors.map(({ pid, command }) => `  ${pid} ${command}`)
      throw new Error(`Still there after the last test, and ended now:\n${lines.join('\n')}`)
    }
    // a part of the suite cannot have seen everything
    const isWhole = project.vitest.config.cliExclude === undefined && process.env['TRELLIS_WHOLE_SUITE'] === '1'
    if (!isWhole) return
    const unseen = unseenCodes(await loadAreas(), seen)
    if (unseen.length > 0)
      throw new Error(`Declared, but no test has seen them:\n${unseen.map((line) => `  ${line}`).join('\n')}`)
  }
}
