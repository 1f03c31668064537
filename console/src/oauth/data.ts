import { useQuery } from '@tanstack/react-query'
import { getOauthRedirects, listOauthProviders } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { useProject } from '../parts/page.tsx'

export type Provider = Awaited<ReturnType<typeof read>>[number]

const read = async (path: { readonly projectId: string }) => (await call(listOauthProviders, { path })).data

export const useOauthProviders = () => {
  const { path } = useProject()
  return useQuery({ queryKey: ['oauth', 'providers', path.projectId], queryFn: () => read(path) })
}

export const useRedirects = () => {
  const { path } = useProject()
  return useQuery({
    queryKey: ['oauth', 'redirects', path.projectId],
    queryFn: async () => (await call(getOauthRedirects, { path })).data,
  })
}

/** Providers that are known by name, in the order of the page. */
export const known: Readonly<Record<string, { readonly title: string; readonly about: string }>> = {
  google: { title: 'Google', about: 'A web client of Google Cloud' },
  apple: { title: 'Apple', about: 'A Services ID and a key of the developer account' },
  github: { title: 'GitHub', about: 'An OAuth app' },
}
/** Not every word of the language is a provider: a name of one's own may be constructor. */
const knownOf = (name: string) => (Object.hasOwn(known, name) ? known[name] : undefined)
export const isKnown = (name: string): boolean => knownOf(name) !== undefined
export const titleOf = (name: string): string => knownOf(name)?.title ?? name
export const aboutOf = (name: string): string | undefined => knownOf(name)?.about
