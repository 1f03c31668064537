import { randomUUID } from 'node:crypto'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ask, type ServerProcess } from '#test/support/process.ts'
import { postgresMemory } from './cpu.ts'
import { address, asAdmin, type Installation } from './installation.ts'

export type Tenant = {
  readonly projectId: string
  readonly key: Readonly<Record<string, string>>
  /** From the request that makes the project to the first answer that says ready. */
  readonly milliseconds: number
}

export type Developer = Readonly<Record<string, string>>

export const signUp = async ({ url }: ServerProcess): Promise<Developer> => {
  const credentials = { email: `${randomUUID()}@example.org`, password: 'correct horse 42 battery' }
  const { status, body } = await ask(url, 'POST', '/v1/auth/developer/signup', credentials, address())
  if (status !== 201) throw new Error(`sign-up answered ${status}: ${JSON.stringify(body)}`)
  return { authorization: `Bearer ${body.data.access_token}` }
}

/** As a user meets it: POST, then the status every five milliseconds. */
export const createTenant = async ({ url }: ServerProcess, developer: Developer): Promise<Tenant> => {
  const began = performance.now()
  const made = await ask(url, 'POST', '/v1/admin/projects', { name: 'bench' }, developer)
  if (made.status !== 201) throw new Error(`POST projects answered ${made.status}: ${JSON.stringify(made.body)}`)
  const projectId = made.body.data.project.id as string
  for (;;) {
    const path = `/v1/admin/projects/${projectId}/provisioning-status`
    const { body } = await ask(url, 'GET', path, undefined, developer)
    if (body.data?.status === 'ready') break
    if (body.data?.status === 'failed' || performance.now() - began > 60_000) throw new Error(JSON.stringify(body))
    await sleep(5)
  }
  const key = { 'x-api-key': made.body.data.api_keys.client.key as string }
  return { projectId, key, milliseconds: performance.now() - began }
}

/** So many more tenants, a few at a time. */
export const createTenants = async (
  server: ServerProcess,
  developer: Developer,
  count: number,
  parallel = 4,
): Promise<Tenant[]> => {
  const made: Tenant[] = []
  let begun = 0
  const work = async () => {
    while (begun < count) {
      begun += 1
      made.push(await createTenant(server, developer))
    }
  }
  await Promise.all(Array.from({ length: parallel }, work))
  return made
}

const pattern = `trellis\\_${'_'.repeat(32)}`

/** Bytes on disk of a folder, in whole blocks as `du` counts, and its files. */
const diskOf = async (folder: string): Promise<{ bytes: number; files: number }> => {
  const sizes = await Promise.all((await readdir(folder)).map((name) => stat(join(folder, name)).catch(() => null)))
  return { bytes: sizes.reduce((sum, found) => sum + (found?.blocks ?? 0) * 512, 0), files: sizes.length }
}

export type Disk = {
  readonly databaseSize: number
  readonly onDisk: number
  readonly files: number
  readonly checkpointMs: number
}

/** Means of at most 20 tenants, after a checkpoint. */
export const tenantDisk = async ({ cluster }: Installation): Promise<Disk> => {
  const began = performance.now()
  await asAdmin(cluster, 'postgres', 'checkpoint')
  const checkpointMs = performance.now() - began
  const rows = await asAdmin<{ folder: string; size: string }>(
    cluster,
    'postgres',
    `select current_setting('data_directory') || '/base/' || oid as folder, pg_database_size(oid) as size
       from pg_database where datname like $1 order by oid desc limit 20`,
    [pattern],
  )
  const sums = { size: 0, bytes: 0, files: 0 }
  for (const { folder, size } of rows) {
    const { bytes, files } = await diskOf(folder)
    sums.size += Number(size)
    sums.bytes += bytes
    sums.files += files
  }
  const mean = (sum: number) => sum / rows.length
  return { databaseSize: mean(sums.size), onDisk: mean(sums.bytes), files: mean(sums.files), checkpointMs }
}

export type Memory = { readonly bytes: number; readonly processes: number }

/** Of all of Postgres, once the pools have closed what was idle. */
export const idleMemory = async ({ cluster, postmaster }: Installation): Promise<Memory> => {
  for (let tries = 0; tries < 60; tries += 1) {
    const [row] = await asAdmin<{ count: number }>(
      cluster,
      'postgres',
      `select count(*)::int from pg_stat_activity where datname like $1`,
      [pattern],
    )
    if (row?.count === 0) break
    await sleep(1000)
  }
  return postgresMemory(postmaster)
}
