import { type Asked, closedLoop, type Looped } from './closed_loop.ts'
import { familyCpu, postgresCpu } from './cpu.ts'

/** A closed loop, and the microseconds of CPU that each of its requests took of the server that answers and of Postgres. */
export type Measured = Looped & { readonly server: number; readonly postgres: number }

export type Where = { readonly origin: string; readonly pid: number; readonly postmaster: number }

export const measured = async (
  { origin, pid, postmaster }: Where,
  next: (n: number) => Asked,
  status: number,
  limits: Parameters<typeof closedLoop>[3],
): Promise<Measured> => {
  const before = { server: familyCpu(pid), postgres: postgresCpu(postmaster) }
  const looped = await closedLoop(origin, next, status, limits)
  return {
    ...looped,
    server: (familyCpu(pid) - before.server) / looped.requests,
    postgres: (postgresCpu(postmaster) - before.postgres) / looped.requests,
  }
}

/** Microseconds of CPU of a request: on a machine that others use, they say more than the clock. */
export const cpuOf = ({ server, postgres }: Measured): number => server + postgres

export type Contestant = {
  readonly name: string
  readonly where: Where
  readonly status: number
  next(n: number): Asked
}

/** Contestants take turns; the first round warms them up and does not count. */
export const inTurns = async (
  contestants: readonly Contestant[],
  rounds: number,
  limits: Parameters<typeof closedLoop>[3],
  { before, after }: { before?: () => Promise<unknown>; after?: (round: number) => void } = {},
): Promise<ReadonlyMap<string, readonly Measured[]>> => {
  const figures = new Map<string, Measured[]>()
  for (let round = 0; round <= rounds; round += 1) {
    for (const { name, where, status, next } of contestants) {
      await before?.()
      const found = await measured(where, next, status, limits)
      if (round > 0) figures.set(name, [...(figures.get(name) ?? []), found])
    }
    after?.(round)
  }
  return figures
}
