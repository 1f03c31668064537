import { createContent, publishContent, setContentLocale } from '../../../sdk/src/generated/admin.ts'
import { isRefusal } from '../../../sdk/src/index.ts'
import { plain } from '../../../server/plain.ts'
import { type Api, apiFor } from '../api.ts'
import type { Command } from '../command.ts'
import { entriesOf, languagesOf } from '../content.ts'
import { type ContentFile, exactText, readContent, readVersions, writeVersions } from '../content_files.ts'
import { CliError, exits, usageError } from '../exit.ts'
import { projectFor, requireManifest } from '../settings.ts'

/** The first language of a new entry: English where there is a file of it, else the first file. */
const homeOf = (files: readonly ContentFile[]): string | undefined =>
  (files.find(({ locale }) => locale === 'en') ?? files[0])?.locale

type Saving = { readonly isNew: boolean; readonly base: number | undefined }

/** Saves one language, and makes its entry where it is missing; the version that it is now, or undefined where somebody was faster. */
const save = async (api: Api, projectId: string, file: ContentFile, { isNew, base }: Saving) => {
  const { key, type, locale, fields } = file
  try {
    if (isNew) {
      const body = { key, content_type: type, default_locale: locale, fields }
      await api.call(createContent, { path: { projectId }, body })
      return 1
    }
    const body = { fields, ...(base === undefined ? {} : { base_version: base }) }
    return (await api.call(setContentLocale, { path: { projectId, idOrKey: key, locale }, body })).data.version
  } catch (error) {
    if (isRefusal(error, 'CONFLICT')) return undefined
    throw error
  }
}

const changedError = (files: readonly ContentFile[], end: string) =>
  new CliError(
    'CONTENT_CHANGED',
    exits.conflict,
    `The project has newer versions of ${files.map(({ file }) => plain(file)).join(', ')}. ${end}`,
    'Pull into a branch of its own and merge, or say --force.',
  )

export const contentPush: Command = {
  name: 'content push',
  summary: 'Save the files of content that differ from the project as new versions',
  about:
    'A language that somebody has saved in the project since the file was pulled is not overwritten: the push ends with 6. Nothing is deleted.',
  flags: {
    type: { value: 'TYPE', about: 'Entries of this type alone' },
    locale: { value: 'TAG', about: 'This language alone' },
    publish: { about: 'Publish what is pushed' },
    force: { about: 'Overwrite what was saved in the project since the pull' },
    yes: { short: 'y', about: 'Do not ask' },
    check: { about: 'Change nothing; end with 8 if the project differs from the files' },
  },
  async run(context) {
    const { terminal } = context
    const { print, paint } = terminal
    const { folder } = await requireManifest(context)
    const [type, locale] = ['type', 'locale'].map((name) => context.option(name))
    const projectId = await projectFor(context)
    const api = await apiFor(context)
    const here = [...(await readContent(folder)).entries()].filter(
      ([, file]) =>
        (type === undefined || file.type === type) &&
        (locale === undefined || file.locale.toLowerCase() === locale.toLowerCase()),
    )
    const versions: Record<string, number> = { ...(await readVersions(folder)) }
    const entries = await terminal.during('Reading the project', () => entriesOf(api, projectId))
    const keys = new Map(entries.map(({ key, content_type }) => [key, content_type]))
    const there = languagesOf(entries)
    const misplaced = here.filter(([, file]) => (keys.get(file.key) ?? file.type) !== file.type)
    if (misplaced.length > 0)
      throw usageError(
        `The type of an entry never changes: ${misplaced.map(([, { file }]) => file).join(', ')}`,
        'Move the files back, or give the entry another key.',
      )
    const changed = here.filter(([name, { fields }]) => {
      const known = there.get(name)
      return !known || exactText(known.fields) !== exactText(fields)
    })
    if (!terminal.isJson)
      for (const [name, { file }] of changed)
        print(`${there.has(name) ? paint.yellow('~') : paint.green('+')} ${plain(file)}`)
    const stale = changed.filter(([name]) => there.has(name) && there.get(name)?.version !== versions[name])
    if (stale.length > 0 && !context.has('force') && !context.has('check')) {
      const files = stale.map(([, file]) => file)
      throw changedError(files, 'Nothing was changed.')
    }
    if (changed.length === 0 || context.has('check')) {
      terminal.answer({ changed: changed.map(([, { file }]) => file), pushed: 0 }, () =>
        print(changed.length === 0 ? 'Nothing to push.' : `${changed.length} would be pushed.`),
      )
      return changed.length === 0 ? exits.done : exits.different
    }
    if (!context.has('yes')) {
      if (!terminal.isInteractive) throw usageError('Nobody can be asked.', 'Say --yes.')
      const answer = await terminal.ask(`Push ${changed.length} to the project? Only yes goes on:`)
      if (answer !== 'yes') throw new CliError('NOT_CONFIRMED', exits.failed, 'Nothing was changed.')
    }
    const homes = new Map<string, string | undefined>()
    for (const [, { key }] of changed)
      if (!keys.has(key)) homes.set(key, homeOf(changed.map(([, file]) => file).filter((file) => file.key === key)))
    // a new entry begins with its default language
    const ordered = changed.toSorted(
      ([, a], [, b]) => Number(homes.get(b.key) === b.locale) - Number(homes.get(a.key) === a.locale),
    )
    const late: ContentFile[] = []
    for (const [name, file] of ordered) {
      // somebody else has made an entry with this key: these are not its languages
      if (homes.has(file.key) && late.some(({ key }) => key === file.key)) {
        late.push(file)
        continue
      }
      const base = context.has('force') ? undefined : (there.get(name)?.version ?? 0)
      const version = await save(api, projectId, file, { isNew: homes.get(file.key) === file.locale, base })
      if (version === undefined) {
        late.push(file)
        continue
      }
      versions[name] = version
      // after each: a push that fails in the middle has told what it did
      await writeVersions(folder, versions)
      if (context.has('publish')) {
        const path = { projectId, idOrKey: file.key, locale: file.locale }
        await api.call(publishContent, { path, body: { version: versions[name] } })
      }
    }
    const pushed = changed.length - late.length
    if (late.length > 0) throw changedError(late, `${pushed} others were pushed.`)
    terminal.answer({ changed: changed.map(([, { file }]) => file), pushed, published: context.has('publish') }, () =>
      print(paint.green(`Pushed ${pushed} ${pushed === 1 ? 'language' : 'languages'}.`)),
    )
    return exits.done
  },
}
