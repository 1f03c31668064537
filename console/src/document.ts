import { type Named, resolved, type Schema } from './schema.ts'

export type Parameter = { readonly name: string; readonly in: string; readonly schema: Schema; readonly $ref?: string }
export type Operation = {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description?: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>>
  }
  readonly responses: Readonly<
    Record<string, { readonly $ref?: string; readonly content?: Readonly<Record<string, { schema: Schema }>> }>
  >
}
type Item = Readonly<Partial<Record<'get' | 'post' | 'put' | 'patch' | 'delete', Operation>>>
export type Document = {
  readonly 'x-tagGroups': readonly { readonly name: string; readonly tags: readonly string[] }[]
  readonly paths: Readonly<Record<string, Item>>
  readonly components: {
    readonly schemas: Named
    readonly parameters: Readonly<Record<string, Parameter>>
    readonly responses: Document['paths'][string] extends never ? never : Operation['responses']
  }
}

/** An operation with its method and path, as `call` of the SDK takes it. */
export type Callable = Operation & { readonly call: string }
/** Rows of one kind: their list, and whatever of the rest the server has for them. */
export type Resource = {
  readonly path: string
  readonly title: string
  readonly tag: string
  readonly part: string
  readonly list: Callable
  readonly create?: Callable
  readonly id?: string
  readonly get?: Callable
  readonly update?: Callable
  readonly remove?: Callable
  /** Of one row. */
  readonly actions: readonly Callable[]
  /** Of all of them: dry runs, imports, grants. */
  readonly tools: readonly Callable[]
}

const prefix = '/v1/admin/projects/{projectId}/'

const replyOf = (document: Document, operation: Operation): Schema | undefined => {
  const reply = operation.responses['200'] ?? {}
  const known = reply.$ref ? document.components.responses[reply.$ref.split('/').at(-1) ?? ''] : reply
  return known?.content?.['application/json']?.schema
}

const isList = (document: Document, operation: Operation) => {
  const { schemas } = document.components
  const reply = replyOf(document, operation)
  const data = reply && resolved(reply, schemas).properties?.['data']
  return data !== undefined && resolved(data, schemas).type === 'array'
}

export const isJsonBody = (operation: Operation) =>
  operation.requestBody === undefined || operation.requestBody.content['application/json'] !== undefined

const titled = (path: string) => {
  const words = path.replace(/[/-]/g, ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** Everything of a project that has a list, in the order of the document's parts. An area added to the server is here by itself. */
export const resourcesOf = (document: Document): readonly Resource[] => {
  const entries = Object.entries(document.paths).filter(([path]) => path.startsWith(prefix))
  const callable = (path: string, method: keyof Item): Callable | undefined => {
    const operation = document.paths[path]?.[method]
    return operation && isJsonBody(operation) ? { ...operation, call: `${method.toUpperCase()} ${path}` } : undefined
  }
  const parts = document['x-tagGroups']
  const partOf = (tag: string) => parts.findIndex(({ tags }) => tags.includes(tag))
  const lists = entries.filter(
    ([path, { get }]) => !path.slice(prefix.length).includes('{') && get && isList(document, get),
  )
  const resources = lists.map(([path, { get }]): Resource => {
    const tag = get?.tags[0] ?? ''
    const beneath = entries.map(([other]) => other).filter((other) => other.startsWith(`${path}/`))
    const row = beneath.find((other) => /^\/\{\w+\}$/.test(other.slice(path.length)))
    const optional = {
      create: callable(path, 'post'),
      id: row?.match(/\{(\w+)\}$/)?.[1],
      get: row ? callable(row, 'get') : undefined,
      update: row ? (callable(row, 'patch') ?? callable(row, 'put')) : undefined,
      remove: row ? callable(row, 'delete') : undefined,
    }
    const known = Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined))
    const posts = (paths: readonly string[]) => paths.flatMap((other) => callable(other, 'post') ?? [])
    return {
      path: path.slice(prefix.length),
      title: titled(path.slice(prefix.length)),
      tag,
      part: parts[partOf(tag)]?.name ?? '',
      list: callable(path, 'get') as Callable,
      ...known,
      actions: row
        ? posts(beneath.filter((other) => other.startsWith(`${row}/`) && !other.slice(row.length).includes('{')))
        : [],
      tools: posts(beneath.filter((other) => !other.slice(path.length).includes('{'))),
    }
  })
  return resources.sort((one, other) => partOf(one.tag) - partOf(other.tag))
}

/** The parameters of the query of a list, without those of its pages. */
export const filtersOf = (document: Document, operation: Operation): readonly Parameter[] =>
  (operation.parameters ?? [])
    .map((parameter) =>
      parameter.$ref ? document.components.parameters[parameter.$ref.split('/').at(-1) ?? ''] : parameter,
    )
    .filter((parameter): parameter is Parameter => parameter?.in === 'query')

export const inputOf = (operation: Operation): Schema | undefined =>
  operation.requestBody?.content['application/json']?.schema
