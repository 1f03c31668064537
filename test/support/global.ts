import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { loadAreas } from '#server/http/areas.ts'
import { startBase } from '#test/support/base.ts'
import { isMetered, tableOfUse } from '#test/support/cpu.ts'
import { unseenCodes, unseenCodesOf } from '#test/support/declared.ts'
import { beginRun } from '#test/support/run.ts'
import type { Base } from '#test/support/server.ts'

declare module 'vitest' {
  interface ProvidedContext {
    base: Base
    dsn: string
    socketDirectory: string | null
    secretsKey: string
    seenFile: string
    postmaster: number | null
  }
}

/** Begins the run's Postgres. What a test leaves behind, a process above all, fails the run. */
export default async (project: TestProject) => {
  const isWhole = project.vitest.config.cliExclude === undefined && process.env['TRELLIS_WHOLE_SUITE'] === '1'
  const run = await beginRun({ inMemory: true })
  const folder = join(run.folder, 'base')
  await mkdir(folder)
  const { stop, postmaster, ...base } = await startBase(folder, !isWhole)
  const { dsn, socketDirectory, secretsKey } = base

  const began = process.cpuUsage()
  const seenFile = join(folder, 'seen.jsonl')
  project.provide('base', base)
  project.provide('dsn', dsn)
  project.provide('socketDirectory', socketDirectory)
  project.provide('secretsKey', secretsKey)
  project.provide('seenFile', seenFile)
  project.provide('postmaster', postmaster)

  return async () => {
    const seen = await readFile(seenFile, 'utf8').catch(() => '')
    if (isMetered) console.log(await tableOfUse(join(folder, 'cpu.jsonl'), process.cpuUsage(began)))
    await stop()
    const survivors = await run.survivors()
    await run.end()
    if (survivors.length > 0) {
      const lines = survivors.map(({ pid, command }) => `  ${pid} ${command}`)
      throw new Error(`Still there after the last test, and ended now:\n${lines.join('\n')}`)
    }
    const part = process.env['TRELLIS_SEEN_OF']
    // a part of the suite sees the routes of its own area alone
    if (!isWhole && !part) return
    const unseen = part ? unseenCodesOf(part, await loadAreas(), seen) : unseenCodes(await loadAreas(), seen)
    if (unseen.length > 0)
      throw new Error(`Declared, but no test has seen them:\n${unseen.map((line) => `  ${line}`).join('\n')}`)
  }
}
