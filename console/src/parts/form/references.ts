import { useQuery } from '@tanstack/react-query'
import { callAny, type Row } from '../../api.ts'
import { useProject } from '../page.tsx'

type Choice = { readonly value: string; readonly label: string }

/** Where the values of a reference come from, so that nobody types an identifier. */
type Source = {
  /** Below the project. */
  readonly list: string
  readonly value: string
  readonly label: string
  /** The list is searched by the server with this parameter: it may be long. */
  readonly search?: string
  /** Other values may be typed: names that the server has not met yet. */
  readonly isFree?: boolean
  /** Where the answer is no list. */
  readonly rows?: (data: unknown) => readonly Row[]
}

const item: Source = { list: 'catalog', value: 'key', label: 'name', search: 'search' }
const event: Source = { list: 'events/names', value: 'event_name', label: 'event_name', isFree: true }
const number: Source = {
  list: 'events/names',
  value: 'path',
  label: 'path',
  isFree: true,
  rows: (data) =>
    (data as readonly { readonly properties?: readonly (Row & { types?: readonly string[] })[] }[]).flatMap(
      ({ properties = [] }) => properties.filter(({ types }) => types?.includes('number')),
    ),
}
const declared = (kind: string) => (data: unknown) =>
  (data as { monetization?: Readonly<Record<string, readonly Row[]>> }).monetization?.[kind] ?? []
const entitlement: Source = {
  list: 'monetization/definitions',
  value: 'key',
  label: 'display_name',
  isFree: true,
  rows: declared('entitlements'),
}

const sources: Readonly<Record<string, Source>> = {
  app_user_id: { list: 'users', value: 'id', label: 'display_name', search: 'search' },
  segment_id: { list: 'segments', value: 'id', label: 'name' },
  event_name: event,
  qualifying_event: event,
  qualify_event: event,
  value_property: number,
  amount_property: number,
  currency_code: { list: 'currencies', value: 'code', label: 'name' },
  entitlement_id: entitlement,
  entitlement_key: entitlement,
  product_key: { ...entitlement, rows: declared('products') },
  offering_key: { ...entitlement, rows: declared('offerings') },
  item_key: item,
  catalog_item_key: item,
  content_item_key: item,
  item_id: { ...item, value: 'id' },
  content_id: { list: 'content', value: 'id', label: 'key', search: 'search' },
  streak_key: { list: 'streaks', value: 'key', label: 'name' },
  streak_definition_id: { list: 'streaks', value: 'id', label: 'name' },
  rule_key: { list: 'xp/rules', value: 'key', label: 'name' },
  achievement_key: { list: 'achievements', value: 'key', label: 'name' },
  achievement_id: { list: 'achievements', value: 'id', label: 'name' },
  reward_achievement_id: { list: 'achievements', value: 'id', label: 'name' },
  template_id: { list: 'push/templates', value: 'id', label: 'name' },
  role_key: { list: 'roles', value: 'key', label: 'name' },
  challenge_id: { list: 'challenges', value: 'id', label: 'name' },
  role_id: { list: 'roles', value: 'id', label: 'name' },
}

const zones = (): readonly Choice[] =>
  ['UTC', ...Intl.supportedValuesOf('timeZone')].map((zone) => ({ value: zone, label: zone }))

/** The name of the source of a property: what the declaration says, else what its name means everywhere. */
export const referenceOf = (name: string, from: string | undefined): string | undefined => {
  const known = from ?? name
  if (known === 'timezone' || known === 'timezones') return 'timezone'
  return known in sources ? known : undefined
}

/** What can be chosen for a reference, or nothing where it is typed. The chosen value stays among them. */
export const useChoices = (reference: string | undefined, text: string, chosen: string | undefined) => {
  const { projectId, path } = useProject()
  const source = reference ? sources[reference] : undefined
  const { data, isFetching } = useQuery({
    queryKey: ['choices', projectId, reference, source?.search ? text : ''],
    enabled: source !== undefined && projectId !== '',
    placeholderData: (before) => before,
    queryFn: async () => {
      const { list = '', search } = source ?? {}
      const query = { limit: search ? 20 : 100, ...(search && text ? { [search]: text } : {}) }
      const { data: found } = await callAny(`GET /v1/admin/projects/{projectId}/${list}`, { path, query })
      return source?.rows?.(found) ?? (found as readonly Row[])
    },
  })
  const isMissing =
    source?.search !== undefined &&
    source.value === 'id' &&
    Boolean(chosen) &&
    data !== undefined &&
    !data.some((row) => row[source.value] === chosen)
  const one = useQuery({
    queryKey: ['choice', projectId, reference, chosen],
    enabled: isMissing,
    staleTime: 300_000,
    queryFn: async () =>
      (await callAny(`GET /v1/admin/projects/{projectId}/${source?.list}/${chosen}`, { path })).data as Row,
  })
  if (reference === 'timezone') return { choices: zones(), isFetching: false, isSearched: false, isFree: false }
  if (!source) return undefined
  const found = [...(data ?? []), ...(one.data ? [one.data] : [])].map((row): Choice => {
    const value = String(row[source.value])
    const label = row[source.label] ?? row['email'] ?? row['key'] ?? value
    return { value, label: String(label) === value ? value : `${label}` }
  })
  const choices = [...new Map(found.map((choice) => [choice.value, choice])).values()]
  if (chosen && !source.isFree && !choices.some(({ value }) => value === chosen))
    choices.push({ value: chosen, label: chosen })
  return { choices, isFetching, isSearched: source.search !== undefined, isFree: source.isFree === true }
}
