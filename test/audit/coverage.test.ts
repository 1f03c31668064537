import { expect, test } from 'vitest'
import type { Route } from '#server/http/route.ts'
import { startAiProvider } from '#test/support/ai.ts'
import { startHarness } from '#test/support/harness.ts'
import { nameOf } from '#test/support/routes.ts'
import { watchTables } from '#test/support/watch_tables.ts'

/**
 * Every route by which a developer changes something, called as its example says on things that the calls before it made: what
 * changed a table has written to the audit trail, in the change's own transaction.
 */
const provider = await startAiProvider()
const harness = await startHarness({ env: provider.env })
harness.beforeStop(provider.close)
// the dates of the examples are still to come
harness.setTime('2026-11-21T12:00:00Z')
const project = await harness.project()
const user = await project.user()

const root = '/admin/projects/:projectId'
const order = ['POST', 'PUT', 'PATCH', 'DELETE']
const depth = (route: Route) => route.path.split('/').length
/** What makes comes before what changes, what deletes comes last, and of that the project. */
const routes = harness.running.areas
  .flatMap((area) => area.routes)
  .filter((route) => route.path.startsWith('/admin') && route.method !== 'GET')
  .sort(
    (a, b) =>
      order.indexOf(a.method) - order.indexOf(b.method) ||
      (a.method === 'DELETE' ? depth(b) - depth(a) : depth(a) - depth(b)),
  )

/** Things that no POST answers with an id, or that no route makes. */
const known: Readonly<Record<string, () => Promise<string>>> = {
  projectId: async () => project.id,
  userId: async () => user.id,
  keyId: async () => (await project.admin.get('')).data.api_keys[0].id,
  operationId: async () => {
    const [row] = await harness.control(
      `select internal.operation_start($1, 'test.cover', 'test__cover') as id from set_config('app.developer_id', $2, true)`,
      [project.id, project.developer.id],
    )
    return row.id
  },
}
/** What must be so before a route has something to change, and how it is undone. */
const scenes: Readonly<Record<string, { set(): Promise<unknown>; clear(): Promise<unknown> }>> = {
  [`POST ${root}/reprovision`]: {
    set: () => harness.control(`update app.tenants set status = 'failed' where project_id = $1`, [project.id]),
    clear: () => harness.running.services.fleet.provision(project.id),
  },
}

const made = new Map<string, string>()
const pathOf = async (route: Route): Promise<string> => {
  const parts = route.path.split('/')
  const found: string[] = []
  for (const [index, part] of parts.entries()) {
    if (!part.startsWith(':')) found.push(part)
    else {
      const id = made.get(parts.slice(0, index).join('/')) ?? (await known[part.slice(1)]?.())
      found.push(id ?? '00000000-0000-4000-8000-000000000000')
    }
  }
  return found.join('/')
}

const both = [harness.control, project.sql] as const
/** The trail itself changes with every change; limits and leases are no changes that somebody made. */
const states = await Promise.all(
  both.map((sql) => watchTables(sql, '^(audit_|rate_limits|workers)', sql === project.sql)),
)
const state = async (): Promise<string> => JSON.stringify(await Promise.all(states.map((one) => one())))
const rows = async (): Promise<number> => {
  const counts = await Promise.all(
    both.map((sql) =>
      sql(`select count(*)::int as count from app.audit_events where actor ->> 'id' = $1`, [project.developer.id]),
    ),
  )
  return counts.reduce((sum, [row]) => sum + row.count, 0)
}

/** Whether it was the call that changed something: what the server does on its own may have. Of a deletion the same again would find nothing. */
const isSilent = async (route: Route, path: string): Promise<boolean> => {
  if (route.method === 'DELETE') return true
  const before = [await state(), await rows()]
  await project.developer.request(route.method, path, route.body ? (route.example ?? {}) : undefined)
  return (await state()) !== before[0] && (await rows()) === before[1]
}

test('every change that a developer makes is in the audit trail', { timeout: 180_000 }, async () => {
  const silent: string[] = []
  const changed: string[] = []
  let before = [await state(), await rows()]
  for (const route of routes) {
    const name = nameOf(route)
    const scene = scenes[name]
    await scene?.set()
    const path = await pathOf(route)
    // both write something of their own; otherwise what the call before has left is what this one finds
    if (scene || route.path.includes(':operationId')) before = [await state(), await rows()]
    const answer = await project.developer.request(route.method, path, route.body ? (route.example ?? {}) : undefined)
    expect(answer.status, `${name}: ${answer.text}`).toBeLessThan(500)
    if (answer.data?.id) made.set(route.path, answer.data.id)
    const after = [await state(), await rows()]
    if (after[0] !== before[0]) {
      changed.push(name)
      if (after[1] === before[1] && (await isSilent(route, path)))
        silent.push(`${name} changed something and wrote no row`)
    }
    await scene?.clear()
    before = scene ? [await state(), await rows()] : after
  }
  expect(silent).toEqual([])
  // so that it is known to have looked: these had something to change
  expect(changed).toEqual(
    expect.arrayContaining([
      'POST /admin/projects',
      `PATCH ${root}`,
      `DELETE ${root}`,
      `POST ${root}/api-keys`,
      `DELETE ${root}/api-keys/:keyId`,
      `POST ${root}/api-keys/:keyId/rotate`,
      `POST ${root}/reprovision`,
      `POST ${root}/operations/:operationId/cancel`,
      `POST ${root}/integrations`,
      `POST ${root}/webhooks`,
      `DELETE ${root}/webhooks/:webhookId`,
      `POST ${root}/streaks`,
      `PATCH ${root}/streaks/:idOrKey`,
      `DELETE ${root}/streaks/:idOrKey`,
      `POST ${root}/streaks/:idOrKey/users/:userId/freezes`,
      `POST ${root}/streaks/:idOrKey/users/:userId/qualify`,
    ]),
  )
})
