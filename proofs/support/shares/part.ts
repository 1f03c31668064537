import { setTimeout as sleep } from 'node:timers/promises'
import type { Cluster } from '#server/database/cluster.ts'
import { controlName, tenantName } from '#server/database/names.ts'
import { ask, createTestProject } from '#test/support/process.ts'
import { address, asAdmin, type Installation, type Scenario, type User } from '../../../bench/support/installation.ts'
import type { Claim } from '../page.ts'

/** One thing that projects share: somebody takes all of it that they may, and what others wait is held against a bound. */
export type Part = {
  /** A word for `--only`. */
  readonly name: string
  /** What another waits at most, as the report says it. */
  readonly bound: string
  run(world: World): Promise<Found>
}

export type Found = { readonly claims: readonly Claim[]; readonly more?: string }

type Headers = Readonly<Record<string, string>>
/** A project with somebody who develops it and somebody who uses it. */
export type Tenant = {
  readonly developer: Headers
  readonly projectId: string
  readonly key: Headers
  readonly serverKey: string
  readonly user: User
}

export type World = {
  readonly installation: Installation
  readonly scenario: Scenario
  readonly url: string
  readonly isShort: boolean
  /** A project of somebody new, who is verified unless it is said that they are not. */
  tenant(verified?: boolean): Promise<Tenant>
  /** A request of somebody with an address of their own; status 0 where no answer came. */
  call(headers: Headers, method: string, path: string, body?: unknown): Promise<Awaited<ReturnType<typeof ask>>>
  /** Statements as the superuser, in the database of a project or in that of control. */
  sql<T extends Record<string, unknown>>(
    projectId: string | 'control',
    text: string,
    values?: readonly unknown[],
  ): Promise<T[]>
}

export const databaseOf = (projectId: string): string =>
  projectId === 'control' ? controlName('trellis') : tenantName('trellis', projectId)

export const createWorld = (
  installation: Installation & { readonly cluster: Cluster },
  scenario: Scenario,
  isShort: boolean,
): World => {
  const { url } = scenario.server
  const world: World = {
    installation,
    scenario,
    url,
    isShort,
    async tenant(verified = true) {
      const made = await createTestProject(url)
      if (verified)
        await world.sql(
          'control',
          `update app.developers d set email_verified = true
             from app.projects p where p.id = $1 and d.id = p.developer_id`,
          [made.projectId],
        )
      const claims = made.user.authorization.split('.')[1] ?? ''
      const { sid } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { sid: string }
      return { ...made, user: { userId: made.userId, sessionId: sid, headers: made.user } }
    },
    call: (headers, method, path, body) =>
      ask(url, method, path, body, { ...address(), ...headers }).catch(() => ({ status: 0, body: {} })),
    sql: (projectId, text, values = []) => asAdmin(installation.cluster, databaseOf(projectId), text, [...values]),
  }
  return world
}

/** What the tenant that takes nothing waited for its answers, and which were refused. */
export type Waits = { readonly longest: number; readonly answers: number; readonly refused: number }

/** Asks again and again, half a second apart, while another takes what it may; `one` says whether it was answered well. */
export const waitsBeside = async (one: () => Promise<boolean>, greedy: () => Promise<unknown>): Promise<Waits> => {
  let isOver = false
  const working = greedy().finally(() => {
    isOver = true
  })
  // it is awaited below, after what is measured beside it
  working.catch(() => undefined)
  const waits = { longest: 0, answers: 0, refused: 0 }
  await sleep(1000)
  do {
    const began = performance.now()
    if (!(await one())) waits.refused += 1
    waits.answers += 1
    waits.longest = Math.max(waits.longest, performance.now() - began)
    await sleep(500)
  } while (!isOver)
  await working
  return waits
}

/** Waits until something is so, asked ten times a second; false when it is not within that time. */
export const until = async (isSo: () => boolean | Promise<boolean>, ms = 120_000): Promise<boolean> => {
  const end = performance.now() + ms
  while (!(await isSo())) {
    if (performance.now() > end) return false
    await sleep(100)
  }
  return true
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`

/** A claim of the report: what another waited, under the bound. */
export const within = (what: string, ms: number, boundMs: number, refused = 0): Claim => ({
  text: `${what} waits ${seconds(ms)} at most (less than ${seconds(boundMs)})${refused > 0 ? `, and ${refused} were refused` : ''}`,
  holds: ms < boundMs && refused === 0,
})

/** A new project of somebody, in milliseconds until it is ready. */
export const createProject = async ({ call }: World, developer: Headers, name = 'new'): Promise<number> => {
  const began = performance.now()
  const made = await call(developer, 'POST', '/v1/admin/projects', { name })
  if (made.status !== 201) throw new Error(`a project was refused: ${made.status} ${JSON.stringify(made.body)}`)
  const path = `/v1/admin/projects/${made.body.data.project.id}/provisioning-status`
  await until(async () => (await call(developer, 'GET', path)).body.data?.status === 'ready')
  return performance.now() - began
}

/** Several projects of one owner, in one organization, asked for all at once until that many are taken; all are ready then. */
export const projectsOf = async (
  { call }: World,
  { developer }: Tenant,
  many: number,
): Promise<{ readonly projectId: string; readonly key: Headers }[]> => {
  const made: { readonly projectId: string; readonly key: Headers }[] = []
  const make = async (_: unknown, n: number) => {
    const { status, body } = await call(developer, 'POST', '/v1/admin/projects', { name: `many ${n}` })
    if (status !== 201) return
    made.push({ projectId: body.data.project.id, key: { 'x-api-key': body.data.api_keys.client.key } })
  }
  while (made.length < many) await Promise.all(Array.from({ length: many - made.length }, make))
  for (const { projectId } of made)
    await until(async () => {
      const { body } = await call(developer, 'GET', `/v1/admin/projects/${projectId}/provisioning-status`)
      return body.data?.status === 'ready'
    })
  return made
}
