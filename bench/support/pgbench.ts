import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Target } from '#server/database/cluster.ts'
import { endedCpu } from './cpu.ts'

const exec = promisify(execFile)

/** The version of the pgbench on this machine, or null: it comes with Postgres's client programs and not with npm. */
export const findPgbench = async (): Promise<string | null> => {
  try {
    const { stdout } = await exec('pgbench', ['--version'])
    return stdout.trim().replace(/^pgbench \(PostgreSQL\) (\S+).*$/, '$1')
  } catch {
    return null
  }
}

export type Script = {
  readonly file: string
  readonly values: Readonly<Record<string, string>>
  /** Settings of the whole connection, for what runs without a switch at each call. */
  readonly session: Readonly<Record<string, string>>
}

/** Writes `lines` as a script of pgbench. */
export const writeScript = async (
  folder: string,
  name: string,
  lines: readonly string[],
  rest: Omit<Script, 'file'>,
): Promise<Script> => {
  const file = join(folder, `${name}.sql`)
  await writeFile(file, `${lines.join('\n')}\n`)
  return { file, ...rest }
}

/** `cpu`: microseconds of pgbench itself for each call. */
export type Measured = { readonly perSecond: number; readonly calls: number; readonly cpu: number }

/** One thread, as the Node process has one. */
export const runPgbench = async (
  target: Target,
  script: Script,
  concurrency: number,
  seconds: number,
): Promise<Measured> => {
  const options = Object.entries(script.session).map(([name, value]) => `-c ${name}=${value}`)
  const variables = Object.entries(script.values).flatMap(([name, value]) => ['-D', `${name}=${value}`])
  const before = endedCpu()
  const { stdout } = await exec(
    'pgbench',
    [
      ...['-n', '-M', 'prepared', '-c', `${concurrency}`, '-j', '1', '-T', `${seconds}`],
      ...['-h', target.host, '-p', `${target.port}`, '-U', target.user, ...variables, '-f', script.file],
      target.database,
    ],
    { env: { PATH: process.env['PATH'], PGPASSWORD: target.password, PGOPTIONS: options.join(' ') } },
  )
  const found = (pattern: RegExp) => Number(pattern.exec(stdout)?.[1] ?? Number.NaN)
  const calls = found(/^number of transactions actually processed: (\d+)/m)
  return { perSecond: found(/^tps = ([\d.]+)/m), calls, cpu: (endedCpu() - before) / calls }
}
