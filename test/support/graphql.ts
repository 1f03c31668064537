import { expect } from 'vitest'
import type { Client, Harness, Project } from '#test/support/harness.ts'

/** A response of GraphQL. */
export type GraphQLAnswer = {
  readonly status: number
  readonly data: any
  readonly errors: { message: string; path?: unknown[]; extensions: { code: string } }[]
  readonly codes: string[]
}

/** Sends a query as the project's developer, or as another client. */
export const ask = async (
  project: Project,
  query: string,
  variables: Record<string, unknown> = {},
  client: Client = project.developer,
): Promise<GraphQLAnswer> => {
  const { status, body } = await client.post(`/admin/projects/${project.id}/graphql`, { query, variables })
  const errors = body.errors ?? []
  return { status, data: body.data, errors, codes: errors.map((error: any) => error.extensions?.code) }
}

/** The data of a query that must succeed. */
export const dataFor = async (project: Project, query: string, variables: Record<string, unknown> = {}) => {
  const answer = await ask(project, query, variables)
  expect(answer.errors, query).toEqual([])
  return answer.data
}

/** A project whose switch is on. */
export const graphqlProject = async (harness: Harness): Promise<Project> => {
  const project = await harness.project()
  expect((await project.admin.patch('', { graphql_enabled: true })).status).toBe(200)
  return project
}

/** What the introspection says of each type. */
export const introspection = `query IntrospectionQuery {
  __schema {
    queryType { name }
    mutationType { name }
    subscriptionType { name }
    types {
      kind
      name
      fields(includeDeprecated: true) {
        name
        args(includeDeprecated: true) { name type { kind name ofType { kind name ofType { kind name ofType { kind name } } } } }
        type { kind name ofType { kind name ofType { kind name ofType { kind name } } } }
      }
      inputFields(includeDeprecated: true) { name type { kind name ofType { kind name } } }
      enumValues(includeDeprecated: true) { name }
    }
  }
}`

export type Named = { readonly kind: string; readonly name: string | null; readonly ofType?: Named | null }
/** The type inside of lists and non-nulls. */
export const innermost = (type: Named): Named => (type.ofType ? innermost(type.ofType) : type)
