import { setImmediate as nextTurn } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { operationIds } from '#server/http/document/operation_ids.ts'
import {
  components,
  type Operation,
  operation,
  referring,
  usualSecurity,
  written,
} from '#server/http/document/operations.ts'
import { type Area, parts, type Route } from '#server/http/route.ts'

export { declaredCodes } from '#server/http/document/codes.ts'

/** The full path of a route. */
export const fullPath = (area: Area, route: Route) => (area.unversioned ? route.path : `/v1${route.path}`)

/** The titles with their descriptions, and the parts that they belong to. */
const tagsOf = (areas: readonly Area[]) => {
  const told = parts.map((part) => ({ part, of: areas.filter((area) => area.part === part) }))
  const others = [...new Set(areas.map((area) => area.title))].filter(
    (title) => !told.some(({ of }) => of.some((area) => area.title === title)),
  )
  return {
    tags: [
      ...told.flatMap(({ of }) => of.map(({ title, about }) => ({ name: title, description: about ?? title }))),
      ...others.map((name) => ({ name, description: name })),
    ],
    'x-tagGroups': [
      ...told.map(({ part, of }) => ({ name: part, tags: of.map(({ title }) => title) })),
      ...(others.length > 0 ? [{ name: 'More', tags: others }] : []),
    ],
  }
}

/** The routes of end users before those of administrators, and by path: the names of schemas depend on the order. */
const inOrder = (areas: readonly Area[]) =>
  areas
    .flatMap((area) =>
      area.routes.map((route) => ({ area, route, path: fullPath(area, route).replace(/:([A-Za-z]+)/g, '{$1}') })),
    )
    .sort((a, b) => rankOf(a.path) - rankOf(b.path) || (keyOf(a) < keyOf(b) ? -1 : 1))

const rankOf = (path: string) => Number(path.startsWith('/v1/admin/'))
const keyOf = ({ path, route }: { path: string; route: Route }) => `${path} ${route.method}`

type Made = { readonly path: string; readonly method: string; readonly operation: Operation }

/** The operations by path, in alphabetical order; parameters of a path that all its operations declare alike are its own. */
const pathsOf = (made: readonly Made[], shared: ReturnType<typeof components>) => {
  const byPath = Map.groupBy(made, ({ path }) => path)
  const items = [...byPath].map(([path, those]): [string, object] => {
    const isOfPath = (parameter: object) =>
      those.every(({ operation }) => operation.path.some((other) => isDeepStrictEqual(other, parameter)))
    const own = those[0]?.operation.path.filter(isOfPath) ?? []
    return [
      path,
      {
        ...(own.length > 0 ? { parameters: own.map(shared.parameters.refer) } : {}),
        ...Object.fromEntries(
          those.map(({ method, operation }) => [method, written(operation, shared, isOfPath)] as const),
        ),
      },
    ]
  })
  return Object.fromEntries(items.sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** The OpenAPI 3.1 document of the live routes. Building it takes hundreds of milliseconds: it yields to requests between two routes. */
export const openApi = async (areas: readonly Area[], publicUrl: string): Promise<object> => {
  const ids = operationIds(areas)
  const shared = components()
  const made: Made[] = []
  for (const { area, route, path } of inOrder(areas)) {
    made.push({
      path,
      method: route.method.toLowerCase(),
      operation: operation(area, route, ids.get(route) ?? '', shared),
    })
    await nextTurn()
  }
  shared.schemas.settle()
  await nextTurn()
  const referred = made.map((one) => ({ ...one, operation: referring(one.operation, shared) }))
  shared.responses.settle()
  shared.parameters.settle()
  await nextTurn()
  const paths = pathsOf(referred, shared)
  await nextTurn()
  return {
    openapi: '3.1.0',
    info: {
      title: 'Trellis',
      version: '1.0.0',
      summary: 'A multi-tenant application backend.',
      description:
        'A successful response has `data`; a failure has `error` with `code`, `message` and sometimes `details`. Every response has `X-Request-Id`. Each operation lists the codes of its statuses; `default` tells those that any operation may answer.',
      contact: { name: 'Trellis', url: `${publicUrl}/docs` },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: publicUrl }],
    ...tagsOf(areas),
    security: usualSecurity,
    paths,
    components: {
      securitySchemes: {
        Developer: {
          type: 'http',
          scheme: 'bearer',
          description:
            'Access token of a developer, or a personal access token (`svc_dpat_…`) or operator token (`svc_dop_…`) with the scope that `x-scope` of the operation names.',
        },
        ServiceAccount: {
          type: 'http',
          scheme: 'bearer',
          description: 'Key of a service account (`svc_dsvc_…`).',
        },
        ApiKey: {
          type: 'apiKey',
          in: 'header',
          name: 'X-Api-Key',
          description: 'Client key or server key of a project.',
        },
        Session: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: "An end user's session token." },
        OnBehalfOf: {
          type: 'apiKey',
          in: 'header',
          name: 'X-On-Behalf-Of',
          description: 'With a server key: the id of the user to act for.',
        },
      },
      schemas: shared.schemas.entries(),
      responses: shared.responses.entries(),
      parameters: shared.parameters.entries(),
    },
  }
}
