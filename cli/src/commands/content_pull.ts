import { plain } from '../../../server/plain.ts'
import { apiFor } from '../api.ts'
import type { Command } from '../command.ts'
import { entriesOf, languagesOf } from '../content.ts'
import { fileFor, readContent, readVersions, writeVersions } from '../content_files.ts'
import { exits, usageError } from '../exit.ts'
import { inside } from '../inside.ts'
import { projectFor, requireManifest } from '../settings.ts'

const signs = { create: '+', update: '~', delete: '-' } as const

export const contentPull: Command = {
  name: 'content pull',
  summary: 'Write the content of the project into files, one for each entry and language',
  about:
    'content/<type>/<key>/<language>.json, or .md for translators. A file that is Markdown stays so. Without --type and --locale, files of what the project does not have are deleted.',
  flags: {
    type: { value: 'TYPE', about: 'Entries of this type alone' },
    locale: { value: 'TAG', about: 'This language alone' },
    markdown: { value: 'FIELD', about: 'Write Markdown files where this field has a text: it is the text below' },
    yes: { short: 'y', about: 'Do not ask' },
    check: { about: 'Write nothing; end with 8 if the files differ from the project' },
  },
  async run(context) {
    const { terminal } = context
    const { paint, print } = terminal
    const { folder } = await requireManifest(context)
    const [type, locale, markdown] = ['type', 'locale', 'markdown'].map((name) => context.option(name))
    const project = await projectFor(context)
    const api = await apiFor(context)
    const here = await readContent(folder)
    const entries = await terminal.during('Reading the project', () => entriesOf(api, project, type))
    const wanted = languagesOf(entries, locale)
    const isWhole = type === undefined && locale === undefined
    const versions: Record<string, number> = isWhole ? {} : { ...(await readVersions(folder)) }
    const changes: { op: keyof typeof signs; file: string; text?: string }[] = []
    for (const [name, language] of wanted) {
      versions[name] = language.version
      const before = here.get(name)
      const { file, text } = fileFor(language, language.fields, before?.body ?? markdown)
      if (before?.file === file && before.text === text) continue
      if (before && before.file !== file) changes.push({ op: 'delete', file: before.file })
      changes.push({ op: before?.file === file ? 'update' : 'create', file, text })
    }
    if (isWhole) for (const [name, { file }] of here) if (!wanted.has(name)) changes.push({ op: 'delete', file })
    const isCheck = context.has('check')
    const color = { create: paint.green, update: paint.yellow, delete: paint.red }
    if (!terminal.isJson) for (const { op, file } of changes) print(`${color[op](signs[op])} ${plain(file)}`)
    if (!isCheck && changes.some(({ op }) => op !== 'create') && !context.has('yes')) {
      if (!terminal.isInteractive) throw usageError('Files would be changed or deleted.', 'Say --yes if they may be.')
      const answer = await terminal.ask('Change these files? Only yes goes on:')
      if (answer !== 'yes') throw usageError('Nothing was written.')
    }
    if (!isCheck) {
      const files = inside(folder)
      for (const { op, file } of changes) if (op === 'delete') await files.remove(file)
      for (const { file, text } of changes) if (text !== undefined) await files.write(file, text)
      await writeVersions(folder, versions)
    }
    const told = changes.map(({ op, file }) => ({ op, file }))
    terminal.answer({ changes: told, languages: wanted.size, written: !isCheck }, () => {
      const count = `${changes.length} ${changes.length === 1 ? 'file' : 'files'}`
      if (changes.length === 0) print('The files are what the project has.')
      else print(isCheck ? `${count} ${changes.length === 1 ? 'differs' : 'differ'}.` : `${count} written.`)
    })
    return isCheck && changes.length > 0 ? exits.different : exits.done
  },
}
