import { describe, expect, test } from 'vitest'
import { ask, dataFor, graphqlProject } from '#test/support/graphql.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await graphqlProject(harness)

const define = async (body: Record<string, unknown>) =>
  expect((await project.admin.post('/collections', body)).status).toBe(201)
const column = (name: string, type = 'text') => ({ name, type })

describe('a collection', () => {
  test('appears, changes and goes with its definition, at once', async () => {
    expect((await ask(project, '{ plants { totalCount } }')).codes).toEqual(['INVALID_QUERY'])
    await define({ name: 'plants', columns: [column('title'), column('height', 'integer')] })
    const user = await project.user()
    const { data: made } = await user.post('/client/collections/plants', { title: 'Fern', height: 12 })
    expect(made.id).toBeDefined()
    const query = '{ plants { totalCount nodes { id title height userId user { id } } } }'
    expect((await dataFor(project, query)).plants).toEqual({
      totalCount: 1,
      nodes: [{ id: made.id, title: 'Fern', height: 12, userId: user.id, user: { id: user.id } }],
    })
    expect(
      (await dataFor(project, `{ user(id: "${user.id}") { plants { totalCount } } }`)).user.plants.totalCount,
    ).toBe(1)

    await project.admin.post('/collections/plants/columns', column('colour'))
    expect((await dataFor(project, '{ plants { nodes { colour } } }')).plants.nodes).toEqual([{ colour: null }])
    await project.admin.patch('/collections/plants/columns/colour', { name: 'tint' })
    expect((await dataFor(project, '{ plants { nodes { tint } } }')).plants.nodes).toEqual([{ tint: null }])
    expect((await ask(project, '{ plants { nodes { colour } } }')).codes).toEqual(['INVALID_QUERY'])
    await project.admin.delete('/collections/plants/columns/tint?confirm=tint')
    expect((await ask(project, '{ plants { nodes { tint } } }')).codes).toEqual(['INVALID_QUERY'])
    await project.admin.delete('/collections/plants?confirm=plants')
    expect((await ask(project, '{ plants { totalCount } }')).codes).toEqual(['INVALID_QUERY'])
  })

  test('with the name of one of our tables has a name of its own, and leaves ours theirs', async () => {
    await define({ name: 'users', columns: [column('nick')] })
    await define({ name: 'push_tokens', columns: [column('label')] })
    const data = await dataFor(
      project,
      '{ users { nodes { id email } } collectionUsers { nodes { nick } } collectionPushTokens { nodes { label } } }',
    )
    expect(data.collectionUsers.nodes).toEqual([])
    expect(data.collectionPushTokens.nodes).toEqual([])
  })

  test('is described by its description, which gives no orders', async () => {
    const description =
      'Notes of a day.\n@omit\n@name evil\n@foreignKey (title) references app.user_passwords (password_hash)'
    await define({ name: 'diaries', description, columns: [column('title')] })
    const { __type: type } = await dataFor(project, '{ __type(name: "Diary") { description fields { name } } }')
    expect(type.description).toBe(description)
    expect(type.fields.map(({ name }: { name: string }) => name)).toEqual(
      expect.arrayContaining(['id', 'title', 'createdAt', 'deletedAt']),
    )
    expect((await ask(project, '{ diaries { totalCount } }')).errors).toEqual([])
  })

  test('of every type of column is shown', async () => {
    const types = [
      'text',
      'integer',
      'bigint',
      'numeric',
      'double',
      'boolean',
      'date',
      'timestamptz',
      'uuid',
      'jsonb',
      'text[]',
      'integer[]',
      'numeric[]',
    ]
    await define({ name: 'things', columns: types.map((type, index) => column(`c${index}`, type)) })
    await project.sql(
      `insert into collections.things (user_id, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12)
       values ($1, 'a"b', 1, 9007199254740993, 1.50, 2.5, true, '2026-01-02', '2026-01-02T03:04:05Z', $1, '{"a": [1, null]}', '{x,"y z",null}', '{1,2}', '{1.1}')`,
      [(await project.user()).id],
    )
    const fields = types.map((_type, index) => `c${index}`).join(' ')
    const { things } = await dataFor(project, `{ things { nodes { ${fields} userId } } }`)
    const [row] = things.nodes
    expect(row).toEqual({
      c0: 'a"b',
      c1: 1,
      c2: '9007199254740993',
      c3: '1.50',
      c4: 2.5,
      c5: true,
      c6: '2026-01-02',
      c7: expect.stringMatching(/^2026-01-02T03:04:05/),
      c8: row.userId,
      c9: { a: [1, null] },
      c10: ['x', 'y z', null],
      c11: [1, 2],
      c12: ['1.1'],
      userId: row.userId,
    })
  })

  test('that somebody changed by hand is seen when its shape is looked at again', async () => {
    await define({ name: 'shelves', columns: [column('title')] })
    await dataFor(project, '{ shelves { totalCount } }')
    await project.sql('alter table collections.shelves add column by_hand text')
    harness.running.services.graphql.drop(`tenant:${project.id}`)
    expect((await dataFor(project, '{ shelves { nodes { byHand } } }')).shelves.nodes).toEqual([])
  })
})
