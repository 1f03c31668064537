// CPU time and memory of processes, as Linux tells them under /proc.
import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** Linux counts CPU time in hundredths of a second, on every architecture. */
const microsecondsPerTick = 10_000

type Times = { readonly parent: number; readonly own: number; readonly ended: number }

const timesOf = (pid: number): Times | null => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // the name stands in brackets and may hold spaces and brackets
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const ticks = (index: number) => Number(fields[index]) * microsecondsPerTick
    return { parent: Number(fields[1]), own: ticks(11) + ticks(12), ended: ticks(13) + ticks(14) }
  } catch {
    return null
  }
}

const childrenOf = (pid: number): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((candidate) => timesOf(candidate)?.parent === pid)

/** Microseconds of CPU that this process has used so far: of a process of one thread, such as one of Postgres, to the nanosecond. */
export const processCpu = (pid: number): number => {
  try {
    if (readdirSync(`/proc/${pid}/task`).length === 1) {
      const [nanoseconds] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')
      if (nanoseconds !== undefined && nanoseconds !== '0') return Number(nanoseconds) / 1000
    }
  } catch {
    // a kernel without these figures
  }
  return timesOf(pid)?.own ?? 0
}

/** Microseconds of CPU of a process and of all that it has started and that still run. */
export const familyCpu = (pid: number): number =>
  childrenOf(pid).reduce((sum, child) => sum + familyCpu(child), timesOf(pid)?.own ?? 0)

/** Microseconds of CPU of the programs that this process has run and that have ended. */
export const endedCpu = (): number => timesOf(process.pid)?.ended ?? 0

/** Microseconds of CPU of Postgres so far: the postmaster, its processes, and those of them that have ended. */
export const postgresCpu = (postmaster: number): number => {
  const children = childrenOf(postmaster).reduce((sum, pid) => sum + (timesOf(pid)?.own ?? 0), 0)
  // after the children: one that ends meanwhile is counted once, as ended
  const { own, ended } = timesOf(postmaster) ?? { own: 0, ended: 0 }
  return children + own + ended
}

const pssOf = (pid: number): number => {
  try {
    const [, kilobytes] = /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')) ?? []
    return Number(kilobytes ?? 0) * 1024
  } catch {
    return 0
  }
}

/** Bytes of memory of all Postgres processes, shared pages counted once (Pss), and how many processes they are. */
export const postgresMemory = (postmaster: number): { bytes: number; processes: number } => {
  const pids = [postmaster, ...childrenOf(postmaster)]
  return { bytes: pids.reduce((sum, pid) => sum + pssOf(pid), 0), processes: pids.length }
}

export const requireProc = (): void => {
  if (!existsSync('/proc/self/smaps_rollup')) throw new Error('The benches read /proc: they run on Linux only.')
}
