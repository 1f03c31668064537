import { describe, expect, test } from 'vitest'
import { prefersGraphQL } from '#server/graphql/handler.ts'
import { personalToken, withBearer } from '#test/support/accounts.ts'
import { ask, dataFor, graphqlProject } from '#test/support/graphql.ts'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await graphqlProject(harness)
const path = `/admin/projects/${project.id}/graphql`
const query = '{ users { totalCount } }'

describe('who may ask', () => {
  test('nobody while the switch is off, and at once when it is on or off again', async () => {
    const other = await harness.project()
    const ownPath = `/admin/projects/${other.id}/graphql`
    expect((await other.developer.get(`/admin/projects/${other.id}`)).data.graphql_enabled).toBe(false)
    expectRefusal(await other.developer.post(ownPath, { query }), 403, 'GRAPHQL_DISABLED')
    for (const graphql_enabled of [true, false]) {
      expect((await other.admin.patch('', { graphql_enabled })).status).toBe(200)
      const answer = await other.developer.post(ownPath, { query })
      if (graphql_enabled) expect(answer.body).toEqual({ data: { users: { totalCount: 0 } } })
      else expectRefusal(answer, 403, 'GRAPHQL_DISABLED')
    }
  })

  test('the developer of the project, and no other caller', async () => {
    const stranger = await harness.developer()
    const user = await project.user()
    expectRefusal(await stranger.post(path, { query }), 403, 'PROJECT_FORBIDDEN')
    for (const client of [harness.anyone, project.app, project.server, user, project.onBehalfOf(user.id)])
      expectRefusal(await client.post(path, { query }), 401, 'INVALID_DEVELOPER_TOKEN')
    expectRefusal(await project.developer.post(path.replace(/.{8}-/, '00000000-'), { query }), 404, 'NOT_FOUND')
  })

  test('a token with the read scope of this project', async () => {
    const other = await graphqlProject(harness)
    const asked = async (scopes: string[], project_ids?: string[]) => {
      const { token } = await personalToken(project.developer, { scopes, ...(project_ids ? { project_ids } : {}) })
      return withBearer(harness.anyone, token).post(path, { query })
    }
    for (const scopes of [['graphql:read'], ['graphql:write'], ['*:read']])
      expect((await asked(scopes)).status, scopes.join()).toBe(200)
    expectRefusal(await asked(['users:read']), 403, 'SCOPE_REQUIRED')
    const { token } = await personalToken(other.developer, { scopes: ['graphql:read'] })
    expectRefusal(await withBearer(harness.anyone, token).post(path, { query }), 403, 'PROJECT_FORBIDDEN')
  })

  test('each asks of the own project alone', async () => {
    const other = await graphqlProject(harness)
    const [mine, theirs] = [await project.user(), await other.user()]
    const idsOf = async (of: typeof project) =>
      (await dataFor(of, '{ users { nodes { id } } }')).users.nodes.map(({ id }: { id: string }) => id)
    expect(await idsOf(project)).toContain(mine.id)
    expect(await idsOf(project)).not.toContain(theirs.id)
    expect(await idsOf(other)).toEqual([theirs.id])
  })
})

describe('requests', () => {
  test.each([
    [[{ query }, { query }], 'INVALID_BODY'],
    [{}, 'VALIDATION_ERROR'],
    [{ query: '' }, 'VALIDATION_ERROR'],
    [{ query: 5 }, 'VALIDATION_ERROR'],
    [{ query: `${query}${' '.repeat(50_000)}` }, 'VALIDATION_ERROR'],
    [{ query, variables: [1] }, 'VALIDATION_ERROR'],
    [{ query, variables: { a: 'x'.repeat(50_001) } }, 'VALIDATION_ERROR'],
    [{ query, operationName: 7 }, 'VALIDATION_ERROR'],
  ])('%# that are none are refused', async (body, code) => {
    expectRefusal(await project.developer.post(path, body as Record<string, unknown>), 400, code)
  })

  test.each([
    '{ users { nodes { nope } } }',
    '{ users { nodes { id }',
    'query A { users { totalCount } } query B { users { totalCount } }',
    'mutation { deleteUser(id: 1) { id } }',
    'subscription { users { totalCount } }',
    '{ user(id: "no uuid") { id } }',
    'query ($n: Int!) { users(first: $n) { totalCount } }',
    '{ users { ...A } } fragment A on UserConnection { ...B } fragment B on UserConnection { ...A }',
  ])('a query that is none is answered with an error: %s', async (text) => {
    const answer = await ask(project, text)
    expect([answer.status, answer.data]).toEqual([200, undefined])
    expect(new Set(answer.codes)).toEqual(new Set(['INVALID_QUERY']))
  })

  test('of several operations one is named', async () => {
    const text = 'query A { users { totalCount } } query B { groups { totalCount } }'
    const { body } = await project.developer.post(path, { query: text, operationName: 'B', variables: null })
    expect(body).toEqual({ data: { groups: { totalCount: 0 } } })
  })

  test('the path is for POST, and for a browser', async () => {
    const { status, body, headers } = await project.developer.get(path)
    expect([status, body.error?.code, headers.get('allow')]).toEqual([405, 'METHOD_NOT_ALLOWED', 'GET, HEAD, POST'])
  })
})

describe('the media type of GraphQL', () => {
  const type = 'application/graphql-response+json'
  const sent = (query: string, accept: string, more: object = {}) =>
    project.developer.with({ accept }).post(path, { query, ...more })

  test.each([
    ['data', '{ users { totalCount } }', {}, 200],
    ['a syntax error', '{ users {', {}, 400],
    ['a field that is not there', '{ nothing }', {}, 400],
    ['a variable that is none', 'query ($n: Int) { users(first: $n) { totalCount } }', { variables: { n: 'x' } }, 400],
    ['no operation', '{ a: __typename }', { operationName: 'b' }, 400],
    ['too much', '{ users(first: 201) { totalCount } }', {}, 400],
    ['an error of a field', '{ users(condition: { createdAt: "no time" }) { totalCount } }', {}, 200],
  ])('answers %s with the status that it has', async (_name, query, more, status) => {
    const own = await sent(query, type, more)
    expect([own.status, own.headers.get('content-type')]).toEqual([status, `${type}; charset=utf-8`])
    expect('errors' in own.body).toBe(status !== 200 || own.body.data.users === null)
    // application/json says 200, as it always did
    const json = await sent(query, 'application/json', more)
    expect([json.status, json.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8'])
    expect(json.body).toEqual(own.body)
  })

  test.each([
    [undefined, false],
    ['*/*', false],
    ['application/json', false],
    [type, true],
    [`${type}; charset=utf-8, application/json; q=0.9`, true],
    [`application/json, ${type}`, true],
    [`application/json, ${type};q=0.5`, false],
    [`${type};q=0`, false],
    ['Application/GraphQL-Response+JSON', true],
  ])('is meant by %s: %s', (accept, expected) => expect(prefersGraphQL(accept)).toBe(expected))

  test('is of the answers of GraphQL, and not of what is refused before it', async () => {
    const { status, headers } = await project.developer.with({ accept: type }).post(path, { query: '' })
    expect([status, headers.get('content-type')]).toEqual([400, 'application/json; charset=utf-8'])
  })
})

describe('rows', () => {
  test('are read with their relations, paged, filtered and ordered', async () => {
    const own = await graphqlProject(harness)
    const streak = await own.admin.post('/streaks', { key: 'daily', name: 'Daily', qualifying_event: 'practised' })
    expect(streak.status).toBe(201)
    const users = [await own.user(), await own.user(), await own.user()]
    for (const user of users) await user.post('/client/streaks/daily/qualify', {})
    const data = await dataFor(
      own,
      `query ($user: UUID!) {
        user(id: $user) { id createdAt userStreaks { totalCount nodes { currentCount userId user { id } streakDefinition { key name } } } }
        first: users(first: 2, orderBy: CREATED_AT_ASC) { totalCount nodes { id } pageInfo { hasNextPage endCursor } }
        streakDefinitionByKey(key: "daily") { userStreaks(condition: { userId: $user }) { totalCount } }
      }`,
      { user: users[1]?.id },
    )
    expect(data.user).toMatchObject({
      id: users[1]?.id,
      userStreaks: {
        totalCount: 1,
        nodes: [
          { currentCount: 1, userId: users[1]?.id, user: { id: users[1]?.id }, streakDefinition: { key: 'daily' } },
        ],
      },
    })
    expect(data.streakDefinitionByKey.userStreaks.totalCount).toBe(1)
    expect(data.first).toMatchObject({ totalCount: 3, pageInfo: { hasNextPage: true } })
    const rest = await dataFor(
      own,
      'query ($after: Cursor) { users(first: 2, after: $after, orderBy: CREATED_AT_ASC) { nodes { id } pageInfo { hasNextPage } } }',
      { after: data.first.pageInfo.endCursor },
    )
    expect(rest.users.pageInfo.hasNextPage).toBe(false)
    const ids = [...data.first.nodes, ...rest.users.nodes].map(({ id }: { id: string }) => id)
    expect(ids).toEqual(users.map(({ id }) => id))
  })

  test('a list without a size has fifty', async () => {
    const own = await graphqlProject(harness)
    await own.sql(`insert into app.users (display_name) select 'user ' || n from generate_series(1, 60) n`)
    const { users } = await dataFor(own, '{ users { totalCount nodes { id } pageInfo { hasNextPage } } }')
    expect([users.nodes.length, users.totalCount, users.pageInfo.hasNextPage]).toEqual([50, 60, true])
  })
})
