import { appendFileSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

/**
 * Where a run's CPU goes: `TRELLIS_CPU=1 npm run test:only -- push_tokens --maxWorkers=1` prints a table. Times of a clock say little on a
 * machine that does something else as well. With one worker, what Postgres uses meanwhile belongs to the phase of that worker; with several
 * only the sums are right.
 */
export const isMetered = process.env['TRELLIS_CPU'] === '1' && process.platform === 'linux'

/** `modules`: the file and what it imports are evaluated; `tests`: the bodies of tests and hooks, without the phases within them. */
const phases = ['modules', 'start', 'projects', 'tests', 'stop'] as const
export type Phase = (typeof phases)[number]

/** Seconds of CPU: of this process, of programs that it started and that have ended, of Postgres. */
type Used = { readonly node: number; readonly programs: number; readonly postgres: number }

export type FileUse = {
  readonly file: string
  readonly phases: Record<Phase, Used>
}

const ticksPerSecond = 100

/** User and system time of a process, and of its children that have ended. */
const timesOf = (pid: number | string): readonly [own: number, children: number] => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const seconds = (first: number) => (Number(fields[first]) + Number(fields[first + 1])) / ticksPerSecond
    return [seconds(11), seconds(13)]
  } catch {
    // it has ended, and its parent counts it
    return [0, 0]
  }
}

const childrenOf = (pid: number): readonly string[] => {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
  } catch {
    return []
  }
}

/** Of a process that lives, in nanoseconds: hundredths of a second are too coarse for many backends that do little. */
const exactTimeOf = (pid: string): number => {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e9
  } catch {
    return timesOf(pid)[0]
  }
}

/** A postmaster and its backends, those included that have ended. */
const postgresTime = (postmaster: number): number => {
  const [own, ended] = timesOf(postmaster)
  return childrenOf(postmaster).reduce((sum, pid) => sum + exactTimeOf(pid), own + ended)
}

const nothing = (): Record<Phase, Used> =>
  Object.fromEntries(phases.map((phase) => [phase, { node: 0, programs: 0, postgres: 0 }])) as Record<Phase, Used>

let postmaster = 0
let last: Used = { node: 0, programs: 0, postgres: 0 }
let outer: Phase = 'modules'
let inner: Phase[] = []
let used = nothing()

const now = (): Used => {
  const { user, system } = process.cpuUsage()
  return { node: (user + system) / 1e6, programs: timesOf('self')[1], postgres: postgresTime(postmaster) }
}

/** What was used since the last call belongs to the phase that went on until now. */
const settle = (): void => {
  const [phase, at] = [inner.at(-1) ?? outer, now()]
  const { node, programs, postgres } = used[phase]
  used[phase] = {
    node: node + at.node - last.node,
    programs: programs + at.programs - last.programs,
    // a backend that ends while it is read is missed once
    postgres: postgres + Math.max(0, at.postgres - last.postgres),
  }
  last = at
}

export const beginFile = (postgres: number): void => {
  if (!isMetered) return
  postmaster = postgres
  ;[outer, inner, used, last] = ['modules', [], nothing(), now()]
}

export const beginTests = (): void => {
  if (!isMetered) return
  settle()
  outer = 'tests'
}

/** What this work uses counts as its phase; of several at once, as that of the one that began last. */
export const metered = async <T>(phase: Phase, work: () => Promise<T>): Promise<T> => {
  if (!isMetered) return work()
  settle()
  inner.push(phase)
  try {
    return await work()
  } finally {
    settle()
    inner.splice(inner.lastIndexOf(phase), 1)
  }
}

export const endFile = (file: string, into: string): void => {
  if (!isMetered) return
  settle()
  appendFileSync(into, `${JSON.stringify({ file, phases: used })}\n`)
}

const cell = (seconds: number) => seconds.toFixed(2).padStart(8)

/** The table of a run; `main` is what the process used that transforms modules and writes the report. */
export const tableOfUse = async (from: string, main: NodeJS.CpuUsage): Promise<string> => {
  const files = (await readFile(from, 'utf8')).split('\n').filter(Boolean)
  const total = nothing()
  const lines = files.map((line) => {
    const { file, phases: use } = JSON.parse(line) as FileUse
    let all = 0
    for (const phase of phases) {
      const [sum, { node, programs, postgres }] = [total[phase], use[phase]]
      all += node + programs + postgres
      total[phase] = { node: sum.node + node, programs: sum.programs + programs, postgres: sum.postgres + postgres }
    }
    return `${file.padEnd(34)}${phases.map((phase) => cell(use[phase].node) + cell(use[phase].postgres + use[phase].programs)).join('')}${cell(all)}`
  })
  const sums = phases.map((phase) => cell(total[phase].node) + cell(total[phase].postgres + total[phase].programs))
  const all = Object.values(total).reduce((sum, { node, programs, postgres }) => sum + node + programs + postgres, 0)
  return [
    `${'seconds of CPU: node, Postgres'.padEnd(34)}${phases.map((phase) => phase.padStart(16)).join('')}${'sum'.padStart(8)}`,
    ...lines,
    `${'all'.padEnd(34)}${sums.join('')}${cell(all)}`,
    `vitest's own process ${((main.user + main.system) / 1e6).toFixed(2)} s`,
  ].join('\n')
}
