import { useQuery } from '@tanstack/react-query'
import type { Document as Bodies, Operation } from '../parts/form/schema.ts'

export type Document = Bodies & {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation & { readonly summary: string }>>>>
}

/** The whole OpenAPI document of the server: every call, not only what forms send. */
export const useWholeDocument = (): Document | undefined =>
  useQuery({
    queryKey: ['openapi'],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => (await (await fetch('/openapi.json')).json()) as Document,
  }).data

type Parameter = { readonly $ref?: string; readonly name: string; readonly in: string; readonly required?: boolean }

const methods = ['get', 'post', 'put', 'patch', 'delete'] as const

/** Operations that an app or a developer calls in a project, as `GET /v1/...`. */
export const operationsOf = (document: Document) =>
  Object.entries(document.paths)
    .filter(([path]) => /^\/v1\/(client|admin\/projects\/\{projectId\})/.test(path))
    .flatMap(([path, item]) =>
      methods.flatMap((method) => {
        const operation = item[method]
        return operation
          ? [
              {
                value: `${method.toUpperCase()} ${path}`,
                label: `${method.toUpperCase()} ${path.replace(/^\/v1/, '').replace('/admin/projects/{projectId}', '')}`,
                about: operation.summary,
              },
            ]
          : []
      }),
    )

export const parametersOf = (document: Document, operation: string, place: string): readonly Parameter[] => {
  const [method = '', path = ''] = operation.split(' ')
  const item = document.paths[path] as unknown as Record<string, { parameters?: readonly Parameter[] }> & {
    parameters?: readonly Parameter[]
  }
  const all = [...(item?.parameters ?? []), ...(item?.[method.toLowerCase()]?.parameters ?? [])]
  const shared = (document.components as unknown as { parameters: Readonly<Record<string, Parameter>> }).parameters
  return all
    .map((one) => (one.$ref ? shared[one.$ref.split('/').at(-1) ?? ''] : one))
    .filter((one): one is Parameter => one !== undefined && one.in === place && one.name !== 'projectId')
}
