import { join } from 'node:path'
import type { Plugin } from 'esbuild'

type Schema = { readonly [keyword: string]: unknown }
type Operation = { readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> } }
type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}
/** A part of the OpenAPI document: bodies by path and method, and the schemas that they refer to. */
type Part = { readonly paths: Record<string, Record<string, Operation>>; readonly schemas: Record<string, Schema> }

const methods = ['post', 'put', 'patch'] as const

/** Adds the schemas that a value refers to, and those that they refer to. */
const collect = (value: unknown, all: Document['components']['schemas'], into: Record<string, Schema>): void => {
  if (Array.isArray(value)) for (const one of value) collect(one, all, into)
  else if (typeof value === 'object' && value !== null)
    for (const [name, inner] of Object.entries(value)) {
      const referred = name === '$ref' && typeof inner === 'string' ? (inner.split('/').at(-1) ?? '') : undefined
      const schema = referred === undefined ? undefined : all[referred]
      if (referred === undefined) collect(inner, all, into)
      else if (schema && !(referred in into)) {
        into[referred] = schema
        collect(schema, all, into)
      }
    }
}

/** What the console's forms need of the OpenAPI document, in parts: the bodies that a developer sends, and the schemas that these refer to. */
export const formParts = (document: Document, partOf: (path: string) => string): ReadonlyMap<string, Part> => {
  const parts = new Map<string, Part>()
  for (const [path, item] of Object.entries(document.paths)) {
    if (!/^\/v1\/(admin|auth\/developer)\//.test(path)) continue
    for (const method of methods) {
      const schema = item[method]?.requestBody?.content['application/json']?.schema
      if (!schema) continue
      const part = parts.get(partOf(path)) ?? { paths: {}, schemas: {} }
      parts.set(partOf(path), part)
      part.paths[path] = {
        ...part.paths[path],
        [method]: { requestBody: { content: { 'application/json': { schema } } } },
      }
      collect(schema, document.components.schemas, part.schemas)
    }
  }
  return parts
}

const readParts = async (sources: string): Promise<ReadonlyMap<string, Part>> => {
  const [{ loadAreas }, { openApi }] = await Promise.all([
    import('#server/http/areas.ts'),
    import('#server/http/openapi.ts'),
  ])
  // not part of the server's program: it is read when the console is built
  const rule: string = join(sources, 'parts/form/part_of.ts')
  const { partOf } = (await import(rule)) as { partOf: (path: string) => string }
  return formParts((await openApi(await loadAreas(), '')) as Document, partOf)
}

/**
 * The module `console:forms`: for each part of the OpenAPI document a function that loads it. A form so waits for a kilobyte or two of the bundle, and not for the
 * whole document, which a container could not make when it is built from the console alone.
 */
export const consoleForms = (sources: string): Plugin => ({
  name: 'console:forms',
  setup: (build) => {
    // beside the work of esbuild, which is another process
    const parts = readParts(sources)
    // told where it is awaited
    parts.catch(() => undefined)
    const namespace = 'console-forms'
    build.onResolve({ filter: /^console:forms(\/.+)?$/ }, ({ path }) => ({
      path: path.slice('console:'.length),
      namespace,
    }))
    build.onLoad({ filter: /^forms$/, namespace }, async () => ({
      contents: `export const forms = {${[...(await parts).keys()]
        .map((name) => `${JSON.stringify(name)}: () => import(${JSON.stringify(`console:forms/${name}`)})`)
        .join(',\n')}}`,
      loader: 'js',
    }))
    build.onLoad({ filter: /^forms\//, namespace }, async ({ path }) => {
      const { paths, schemas } = (await parts).get(path.slice('forms/'.length)) ?? { paths: {}, schemas: {} }
      const text = JSON.stringify({ paths, components: { schemas } })
      // a text that is parsed is ready sooner than an object that is compiled
      return { contents: `export const document = JSON.parse(${JSON.stringify(text)})`, loader: 'js' }
    })
  },
})
