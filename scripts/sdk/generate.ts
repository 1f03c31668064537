import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { root } from '#server/root.ts'
import { isName, type Schema, typeOf } from './types.ts'

/**
 * The generated part of `sdk/`: types, and one constant for each operation of the last released document. A constant is the method and the
 * path, so that an operation weighs its text in an app's bundle when it is used, and nothing otherwise.
 */

type Parameter = { name: string; in: 'path' | 'query' | 'header'; required?: boolean; schema: Schema }
type Response = { description?: string; content?: Readonly<Record<string, { schema?: Schema }>> }
type Operation = {
  operationId: string
  summary?: string
  parameters?: (Parameter | { $ref: string })[]
  requestBody?: { required?: boolean; content: Readonly<Record<string, { schema: Schema }>> }
  responses: Readonly<Record<string, Response | { $ref: string }>>
}
type PathItem = Readonly<Record<string, Operation>> & { readonly parameters?: Operation['parameters'] }
export type Document = {
  info: { version: string }
  paths: Readonly<Record<string, PathItem>>
  components: {
    schemas: Readonly<Record<string, Schema>>
    responses: Readonly<Record<string, Response>>
    parameters: Readonly<Record<string, Parameter>>
  }
}

const header = '// Made from docs/schema/openapi-released.json.gz by `npm run docs`.\n'

export const releasedDocument = async (): Promise<Document> =>
  JSON.parse(gunzipSync(await readFile(join(root, 'docs/schema/openapi-released.json.gz'))).toString())

/** The operations of a path, each with the parameters that the path says for all of them. */
const operationsOf = (item: PathItem): [string, Operation][] =>
  Object.entries(item)
    .filter(([method]) => method !== 'parameters')
    .map(([method, operation]) => {
      const parameters = [...(item.parameters ?? []), ...((operation as Operation).parameters ?? [])]
      return [method, { ...(operation as Operation), parameters }]
    })

const nameOfReference = (reference: string) => reference.slice(reference.lastIndexOf('/') + 1)

const resolved = <T extends object>(value: T | { $ref: string }, from: Readonly<Record<string, T>>): T => {
  if (!('$ref' in value)) return value
  const found = from[nameOfReference(value.$ref as string)]
  if (!found) throw new Error(`${value.$ref} leads nowhere.`)
  return found
}

/** Schemas that a request may contain: their enums are closed. Those of responses get further values within a version. */
const namesSent = (document: Document): Set<string> => {
  const sent = new Set<string>()
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const item of value) visit(item)
    else if (typeof value === 'object' && value !== null) {
      for (const [key, item] of Object.entries(value)) {
        if (key !== '$ref' || typeof item !== 'string') visit(item)
        else if (item.startsWith('#/components/schemas/') && !sent.has(nameOfReference(item))) {
          sent.add(nameOfReference(item))
          visit(document.components.schemas[nameOfReference(item)])
        }
      }
    }
  }
  for (const item of Object.values(document.paths))
    for (const [, { requestBody }] of operationsOf(item)) visit(requestBody)
  return sent
}

const schemasFile = (document: Document): string => {
  const sent = namesSent(document)
  const parts = Object.entries(document.components.schemas).map(
    ([name, schema]) => `export type ${name} = ${typeOf(schema, { open: !sent.has(name), indent: '' })}\n`,
  )
  return `${header}${parts.join('')}`
}

const groupOf = (parameters: readonly Parameter[]): string =>
  `{ ${parameters
    .map(({ name, required, schema }) => {
      const key = isName(name) ? name : JSON.stringify(name)
      return `${key}${required ? '' : '?'}: ${typeOf(schema, { open: false, indent: '', prefix: 'S.' })}`
    })
    .join('; ')} }`

const inputOf = (document: Document, { parameters = [], requestBody }: Operation): string => {
  const all = parameters.map((parameter) => resolved(parameter, document.components.parameters))
  const groups = (['path', 'query', 'header'] as const).flatMap((kind) => {
    const here = all.filter((parameter) => parameter.in === kind)
    if (here.length === 0) return []
    return `${kind}${here.some(({ required }) => required) ? '' : '?'}: ${groupOf(here)}`
  })
  if (requestBody) {
    const json = requestBody.content['application/json']
    const type = json ? typeOf(json.schema, { open: false, indent: '', prefix: 'S.' }) : 'RawBody'
    groups.push(`body${requestBody.required === false ? '?' : ''}: ${type}`)
  }
  return groups.length === 0 ? 'Nothing' : `{ ${groups.join('; ')} }`
}

const replyOf = (document: Document, { responses }: Operation): string => {
  const types = new Set<string>()
  for (const [status, response] of Object.entries(responses)) {
    if (Number(status) < 200 || Number(status) > 299 || status === 'default') continue
    const { content = {} } = resolved(response, document.components.responses)
    for (const [type, { schema }] of Object.entries(content)) {
      const isJson = type === 'application/json' && schema !== undefined
      types.add(isJson ? typeOf(schema, { open: true, indent: '', prefix: 'S.' }) : 'RawReply')
    }
  }
  return types.size === 0 ? 'undefined' : [...types].join(' | ')
}

const operationsFile = (document: Document, isHere: (path: string) => boolean): string => {
  const parts = Object.entries(document.paths)
    .filter(([path]) => isHere(path))
    .flatMap(([path, item]) =>
      operationsOf(item).map(([method, operation]) => {
        const { operationId, summary } = operation
        const about = summary ? `/** ${summary.replaceAll('*/', '*\\/')} */\n` : ''
        const types = `${inputOf(document, operation)}, ${replyOf(document, operation)}`
        return `${about}export const ${operationId} = '${method.toUpperCase()} ${path}' as Operation<${types}>\n`
      }),
    )
  const used = parts.join('')
  const kinds = ['Nothing', 'Operation', 'RawBody', 'RawReply'].filter((name) => new RegExp(`\\b${name}\\b`).test(used))
  return `${header}import type { ${kinds.join(', ')} } from '../operation.ts'\nimport type * as S from './schemas.ts'\n\n${used}`
}

/** Every code of a refusal that the document names, with those of `default`, which stand in its description. */
const codesFile = (document: Document): string => {
  const codes = new Set<string>()
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const item of value) visit(item)
    else if (typeof value === 'object' && value !== null) {
      const { code } = (value as { properties?: { code?: { enum?: string[]; const?: string } } }).properties ?? {}
      for (const one of code?.enum ?? (code?.const ? [code.const] : [])) codes.add(one)
      for (const item of Object.values(value)) visit(item)
    }
  }
  visit(document.components.responses)
  for (const item of Object.values(document.paths)) {
    for (const [, { responses }] of operationsOf(item)) visit(responses)
  }
  for (const { description = '' } of Object.values(document.components.responses)) {
    for (const [, code = ''] of description.matchAll(/`([A-Z]+(?:_[A-Z]+)+)`/g)) codes.add(code)
  }
  const lines = [...codes].sort().map((code) => `  | '${code}'\n`)
  return `${header}/** What \`error.code\` may be. Later servers may answer further codes. */\nexport type ErrorCode =\n${lines.join('')}`
}

const isOfApps = (path: string) => path.startsWith('/v1/client/')

/** The generated files with their text, by their path in the repository. */
export const sdkFiles = (document: Document): [string, string][] => [
  ['sdk/src/generated/schemas.ts', schemasFile(document)],
  ['sdk/src/generated/client.ts', operationsFile(document, isOfApps)],
  ['sdk/src/generated/admin.ts', operationsFile(document, (path) => !isOfApps(path))],
  ['sdk/src/generated/codes.ts', codesFile(document)],
]
