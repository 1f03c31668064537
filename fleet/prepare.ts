import { type Check, type Programs, prepareInstallation } from '#fleet/installation.ts'
import { readProgram } from '#fleet/load/files.ts'
import type { Upgrade } from '#fleet/load/target.ts'
import type { Foundation } from '#fleet/postgres.ts'
import { logged, type Progress } from '#fleet/progress.ts'
import type { Cluster } from '#server/database/cluster.ts'
import { root } from '#server/root.ts'

/** The program, and where control is. */
export type Installed = {
  readonly programs: Programs
  readonly cluster: Cluster
  /** What tenants need that follow at once, where the template has just been built. */
  readonly upgrade?: Upgrade | null
}

type PrepareOptions = {
  readonly progress?: Progress
  /** Called while the template is still being built: see `prepareInstallation`. */
  readonly onControl?: (installed: Installed, isNew: boolean) => void
  /** Whether tenants follow at once. */
  readonly isRolledOut?: boolean
}

/** What only tests pass: their SQL, and whoever checks the program afterwards and wants to name all that is wrong. */
export type OwnProgram = { readonly sqlRoot?: string; readonly isUnchecked?: boolean }

/** Brings the databases to this program, and answers where control is. */
export const prepare = async (
  foundation: Foundation,
  { sqlRoot: base = root, isUnchecked = false }: OwnProgram = {},
  { progress = logged(foundation.log), onControl = () => undefined, isRolledOut = false }: PrepareOptions = {},
): Promise<Installed> => {
  const { config, log, secrets, postgres } = foundation
  const [control, tenant] = await Promise.all([readProgram('control', base), readProgram('tenant', base)])
  const programs = { control, tenant }
  const cluster = { id: '', dsn: postgres.dsn, socketDirectory: postgres.socketDirectory, isOwn: true }
  const options = {
    log,
    progress,
    onControl: (id: string, isNew: boolean) => onControl({ programs, cluster: { ...cluster, id } }, isNew),
    isRolledOut,
    ...(isUnchecked ? {} : { check: checkFor(base) }),
  }
  const { clusterId, upgrade } = await prepareInstallation(cluster, config.DATABASE_PREFIX, programs, secrets, options)
  return { programs, cluster: { ...cluster, id: clusterId }, upgrade }
}

/**
 * Refuses a program whose routes and SQL do not fit together, before it reaches a project. Routes and all that they import are read when there is
 * something to check: Postgres is at work by then. `warn` hears of policies that work and are slow or confusing.
 */
export const checkFor =
  (base: string, warn: (line: string) => void = () => undefined): Check =>
  async (client, kind, former, isTrial = false) => {
    const [{ checkDatabase, lineOf, refuseErrors }, { loadAreas }] = await Promise.all([
      import('#fleet/checks/program.ts'),
      import('#server/http/areas.ts'),
    ])
    const found = await checkDatabase(client, kind, await loadAreas(), { base, isQuick: true, former, isTrial })
    refuseErrors(found)
    for (const one of found) warn(lineOf(one))
  }
