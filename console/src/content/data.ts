import type { ContentVersion, CreateContentReply } from '../../../sdk/src/generated/schemas.ts'

export type Entry = CreateContentReply['data']
export type Language = Entry['locales'][string]
export type Version = ContentVersion
export type Fields = Readonly<Record<string, unknown>>

const names = new Intl.DisplayNames('en', { type: 'language' })
/** `German (Austria)`, as far as the browser knows the tag. */
export const languageName = (tag: string): string => {
  try {
    return names.of(tag) ?? tag
  } catch {
    return tag
  }
}

/** The default language first, the others by name. */
export const localesOf = (entry: Entry): readonly string[] =>
  Object.keys(entry.locales).sort(
    (a, b) =>
      Number(b === entry.default_locale) - Number(a === entry.default_locale) ||
      languageName(a).localeCompare(languageName(b)),
  )

/** The names of the fields of these, each once. */
export const namesOf = (...fields: readonly (Fields | undefined)[]): readonly string[] => [
  ...new Set(fields.flatMap((one) => Object.keys(one ?? {})).sort()),
]

/** Whether what is saved is newer than what apps see. */
export const hasDraft = ({ version, published_version }: Language): boolean =>
  published_version !== null && version > published_version

export const stateWords = (language: Language): string =>
  language.status === 'published' && hasDraft(language) ? 'published, with changes' : language.status

/** A value as text, for comparing and for placeholders. */
export const asText = (value: unknown): string =>
  value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value, null, 2)
