import { expect } from 'vitest'
import type { Harness, Project } from '#test/support/harness.ts'

export type Registered = { kind: string; key_column: string | null; name: string }

/** The kinds that promotion copies, as they are registered, in the order in which they are created. */
export const registeredIn = (project: Project): Promise<Registered[]> =>
  project.sql(
    'select kind, key_column, internal.promoted_as(d) as name from internal.definitions d where kept_back is null order by create_order, kind',
  )

export const exportOf = async (of: Project) => (await of.admin.get('/promotion/export')).data

/** Creates the example of a kind, by the route that creates or replaces it. */
export const define = async (harness: Harness, project: Project, { kind, key_column: key }: Registered) => {
  const routes = harness.running.areas.flatMap((area) => area.routes)
  const path = routes.find((one) => one.definition?.kind === kind)?.path.replace(/\/:[A-Za-z]+$/, '') ?? ''
  const creation = routes.find((one) => one.method === 'POST' && one.path === path)
  const replacement = routes.find((one) => one.method === 'PUT' && one.path.replace(/\/:[A-Za-z]+$/, '') === path)
  const at = path.replace('/admin/projects/:projectId', '')
  const example = (creation ?? replacement)?.example as Record<string, unknown>
  const answer = creation
    ? await project.admin.post(at, example)
    : await project.admin.put(`${at}/${example[key ?? ''] ?? 'example_1'}`, example)
  expect(answer.status, `${kind}: ${answer.text}`).toBeLessThan(300)
}

/** A segment, and definitions that refer to it by its id, which differs between projects. */
export const configure = async (project: Project) => {
  const { admin } = project
  const { data: pros } = await admin.post('/segments', { key: 'pros', name: 'Pros', rules: { and: [] } })
  const leaf = { source: 'segment', op: 'in', segment_id: pros.id }
  await admin.post('/segments', { key: 'nested', name: 'Nested', rules: { and: [{ or: [leaf] }] } })
  await admin.post('/config', {
    key: 'greeting',
    value: 'hello',
    conditions: [{ segment_id: pros.id, value: 'hello, pro' }],
  })
  await admin.post('/catalog', { key: 'ring', name: 'Ring', item_type: 'durable' })
  await admin.post('/catalog', {
    key: 'chest',
    name: 'Chest',
    item_type: 'bundle',
    bundle_contents: [{ content_item_key: 'ring', quantity: 2 }],
  })
  return pros.id as string
}
