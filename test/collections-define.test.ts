import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()

test('a collection is an ordinary table with named constraints, indexes and policies', async () => {
  const made = await project.admin.post('/collections', {
    name: 'posts',
    description: 'What users write',
    columns: [
      { name: 'title', type: 'text', nullable: false, max_length: 20, unique: true },
      { name: 'score', type: 'double', min: 0, max: 10, default: 1 },
      { name: 'tags', type: 'text[]' },
      { name: 'kind', type: 'text', enum: ["it's", 'b'], default: "it's" },
      { name: 'at', type: 'timestamptz', default: { $fn: 'now' } },
      { name: 'parent_id', type: 'uuid', references: { collection: 'posts', on_delete: 'restrict' } },
      { name: 'embedding', type: 'vector', dimensions: 3 },
    ],
    indexes: [
      { columns: ['user_id', 'title'], unique: true },
      { columns: ['tags'], method: 'gin' },
    ],
  })
  expect(made.error).toBeUndefined()
  expect(made.status).toBe(201)
  const user = await project.user()
  const [row] = await project.as(
    'app_user',
    { 'app.user_id': user.id },
    `insert into collections.posts (title, tags, embedding) values ('a', '{x}', '{1,2,3}') returning *`,
  )
  expect(row).toMatchObject({ title: 'a', score: 1, kind: "it's", user_id: user.id })
  const [deleted] = await project.as(
    'app_user',
    { 'app.user_id': user.id },
    `update collections.posts set deleted_at = '2000-01-01' where id = $1 returning *`,
    [row.id],
  )
  expect(new Date(deleted.deleted_at).getFullYear()).toBeGreaterThan(2020)
})
