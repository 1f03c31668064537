import { adminListContent } from '../../sdk/src/generated/admin.ts'
import type { Api } from './api.ts'

/** The fields of one language. */
export type Content = Readonly<Record<string, unknown>>
export type Language = { readonly fields: Content; readonly version: number; readonly status: string }
export type Entry = {
  readonly key: string
  readonly content_type: string
  readonly default_locale: string
  readonly locales: Readonly<Record<string, Language>>
}
/** One language of one entry. */
export type Place = { readonly type: string; readonly key: string; readonly locale: string }

/** `article/welcome/de`: none of the three can have a slash. */
export const nameOf = ({ type, key, locale }: Place): string => `${type}/${key}/${locale}`

/** All entries of a project, or those of a type, with the newest save of each language. */
export const entriesOf = async (api: Api, projectId: string, type?: string): Promise<readonly Entry[]> => {
  const entries = new Map<string, Entry>()
  for (let offset = 0; ; ) {
    const query = { limit: 200, offset, ...(type ? { content_type: type } : {}) }
    const { data, total } = await api.call(adminListContent, { path: { projectId }, query })
    for (const entry of data) entries.set(entry.key, entry as Entry)
    offset += data.length
    if (data.length === 0 || offset >= total) break
  }
  return [...entries.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
}

/** Each language of these entries by its name; of one language alone where it is given. */
export const languagesOf = (entries: readonly Entry[], only?: string): Map<string, Place & Language> =>
  new Map(
    entries.flatMap(({ key, content_type: type, locales }) =>
      Object.entries(locales)
        .filter(([locale]) => only === undefined || locale.toLowerCase() === only.toLowerCase())
        .map(([locale, language]) => {
          const place = { type, key, locale }
          return [nameOf(place), { ...place, ...language }] as const
        }),
    ),
  )
