import { useQuery } from '@tanstack/react-query'
import { listUsers } from '../../../sdk/src/generated/admin.ts'
import { call, type Row } from '../api.ts'
import { useEventNames } from '../parts/event_names.ts'
import { isObject } from '../parts/form/schema.ts'
import { useProject } from '../parts/page.tsx'

const pathsOf = (row: Row, before = ''): readonly (readonly [string, unknown])[] =>
  Object.entries(row).flatMap(([name, value]): readonly (readonly [string, unknown])[] =>
    isObject(value) ? pathsOf(value, `${before}${name}.`) : [[before + name, value]],
  )

/** The properties that users have, with the values that the newest of them have. */
export const useProperties = () => {
  const { path } = useProject()
  const { data } = useQuery({
    queryKey: ['user properties', path.projectId],
    staleTime: 60_000,
    queryFn: async () => {
      const found = new Map<string, Set<unknown>>()
      for (const user of (await call(listUsers, { path, query: { limit: 100 } })).data)
        for (const [name, value] of pathsOf(user.properties as Row))
          if (value !== null) found.set(name, (found.get(name) ?? new Set()).add(value))
      return found
    },
  })
  return data ?? new Map<string, Set<unknown>>()
}

/** Names of what the events of a name have as numbers. */
export const useNumbers = (event: unknown) => {
  const { data } = useEventNames()
  const properties = data?.find(({ event_name }) => event_name === event)?.properties ?? []
  return properties.filter(({ types }) => types.includes('number')).map(({ path: name }) => name)
}
