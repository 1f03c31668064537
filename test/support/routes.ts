import type { Route } from '#server/http/route.ts'
import { unsubscribeUrl } from '#server/providers/project_mail.ts'
import {
  type Answer,
  type Client,
  createClient,
  type Developer,
  type Harness,
  type Project,
  type User,
} from '#test/support/harness.ts'

const uuid = '00000000-0000-4000-8000-000000000000'

export type Cast = {
  readonly harness: Harness
  readonly project: Project
  readonly user: User
  readonly developer: Developer
  /** The organization of the project. */
  readonly organization: string
}

/** A project with a signed-in user, and a developer without a project. */
export const createCast = async (harness: Harness): Promise<Cast> => {
  const project = await harness.project()
  const { organization_id: organization } = (await project.admin.get('')).data
  return { harness, project, organization, user: await project.user(), developer: await harness.developer() }
}

export const nameOf = (route: Route) => `${route.method} ${route.path}`

/** A path that leads into the project or the organization; other ids in it name nothing. */
export const pathOf = (route: Route, projectId: string, organization = uuid) =>
  route.path
    .replace(':projectId', projectId)
    .replace(':orgId', organization)
    .replace(/:[A-Za-z]+/g, uuid)

/** Who may call a route. */
export const clientOf = (route: Route, { harness, project, user, developer }: Cast): Client => {
  if (route.caller.guards) return project.developer
  if (['developer', 'delegator'].includes(route.caller.name)) return developer
  if (['serverForUser', 'serverAlone'].includes(route.caller.name)) return project.onBehalfOf(user.id)
  return route.path.startsWith('/client') ? user : harness.anyone
}

/** The declared example, which is good enough to reach the function behind the route; tokens and projects must be real ones. */
export const bodyOf = (route: Route, { user, developer, project }: Cast) => {
  const { example } = route
  if (Array.isArray(example)) return example
  if (!route.body) return undefined
  const refresh_token = route.path.startsWith('/client') ? user.refreshToken : developer.refreshToken
  const real: Record<string, unknown> = { refresh_token, target_project_id: project.id }
  return Object.fromEntries(Object.entries(example ?? {}).map(([name, value]) => [name, real[name] ?? value]))
}

const values = ['a', 'app', '1', uuid, '2026-01-01T00:00:00Z', 'https://app.example.org/signed-in']

/** The parameters that a query must have, each with a value that its schema takes. */
const queryOf = ({ query = {} }: Route, projectId: string) => {
  const required = Object.entries(query).filter(([, schema]) => !schema.safeParse(undefined).success)
  const pairs = required.map(([name, schema]) => [name, values.find((value) => schema.safeParse(value).success) ?? ''])
  // webhooks refuse a missing one themselves
  if (query['project_id']) pairs.push(['project_id', projectId])
  return pairs.length > 0 ? `?${new URLSearchParams(Object.fromEntries(pairs))}` : ''
}

/** A link to unsubscribe must be one that this server made. */
const linkOf = (route: Route, services: Harness['running']['services'], project: string, organization: string) =>
  route.path === '/u/:token'
    ? new URL(unsubscribeUrl(services, { project, address: 'a@example.org', category: 'news' })).pathname
    : pathOf(route, project, organization)

/** Calls a route as it is meant to be called, or as somebody else, or with another body. */
export const callRoute = (
  route: Route,
  cast: Cast,
  as?: Client,
  projectId = cast.project.id,
  other?: string,
): Promise<Answer> => {
  const [file] = route.uploads ?? []
  const [body, headers] = file ? ['{}', { 'content-type': file }] : [other ?? bodyOf(route, cast), {}]
  const { services } = cast.harness.running
  const client = as ?? clientOf(route, cast)
  const at = services.areaOf(route).unversioned ? createClient(cast.harness.url)(client.headers, '') : client
  return at.request(
    route.method,
    linkOf(route, services, projectId, cast.organization) + queryOf(route, projectId),
    body,
    headers,
  )
}
