import { join } from 'node:path'
import { type Content, nameOf, type Place } from './content.ts'
import { protect, restore } from './exact.ts'
import { CliError, exits, filesError, usageError } from './exit.ts'
import { type Inside, inside } from './inside.ts'

export type ContentFile = Place & { readonly file: string; readonly fields: Content; readonly text: string }

const root = 'content'
/** Beside the languages: the version that each file was pulled as, so that a push overwrites nothing that it has not seen. */
const versionsFile = join(root, 'versions.json')
/** In a Markdown file: the field that is its text. */
const bodyMember = '$body'

const isName = (text: string) => /^[A-Za-z0-9_.-]{1,64}$/.test(text)
const isLocale = (text: string) => /^[A-Za-z0-9]+(-[A-Za-z0-9]+)*$/.test(text) && text.length <= 64
const isDevice = (text: string) => /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/.test(text)

/** A key as the name of a folder on every file system: `A` is `~a`, and a name that systems take for something else has `~~` before it or `~` after it. */
export const folderOf = (key: string): string => {
  const small = key.replace(/[A-Z]/g, (letter) => `~${letter.toLowerCase()}`)
  const front = small.startsWith('.') || isDevice(small) ? '~~' : ''
  return `${front}${small}${small.endsWith('.') ? '~' : ''}`
}

const keyOf = (folder: string): string =>
  folder
    .replace(/^~~/, '')
    .replace(/~$/, '')
    .replace(/~([a-z])/g, (_, letter: string) => letter.toUpperCase())

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(members.map(([name, one]) => [name, sorted(one)]))
}

/** Equal fields in one text, whatever their order. */
export const exactText = (fields: Content): string => JSON.stringify(sorted(fields))

const jsonText = (fields: Content): string => `${restore(JSON.stringify(sorted(fields), null, 2))}\n`

const nameText = (name: string) => (/^[A-Za-z_][\w-]*$/.test(name) ? name : JSON.stringify(name))

/** Front matter of one JSON value a line, which is YAML too, and the text of one field below it. */
const markdownText = (fields: Content, body: string): string => {
  const { [body]: text, ...rest } = sorted(fields) as Record<string, unknown>
  const lines = Object.entries({ [bodyMember]: body, ...rest }).map(([name, value]) => {
    const shown = name === bodyMember ? name : nameText(name)
    return `${shown}: ${restore(JSON.stringify(value))}\n`
  })
  return `---\n${lines.join('')}---\n${String(text)}\n`
}

/** The field that can be the text of a Markdown file; undefined where the language has no such text. */
const bodyOf = (fields: Content, body: string | undefined): string | undefined =>
  body !== undefined &&
  typeof fields[body] === 'string' &&
  !String(fields[body]).includes('\r') &&
  !(bodyMember in fields)
    ? body
    : undefined

const parsedJson = (text: string): unknown => JSON.parse(protect(text))

const objectOf = (value: unknown, file: string): Content => {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw usageError(`${file} must hold an object.`)
  return value as Content
}

const parsedMarkdown = (text: string, file: string): { fields: Content; body: string } => {
  const [, front, below] = /^---\n([\s\S]*?\n)?---(?:\n([\s\S]*))?$/.exec(text) ?? []
  if (front === undefined) throw usageError(`${file} must begin with lines of fields between two lines of ---.`)
  const fields: Record<string, unknown> = Object.create(null)
  for (const line of front.split('\n')) {
    if (line.trim() === '') continue
    const [, name = '', value = ''] = /^("(?:[^"\\]|\\.)*"|[$\w-]+)\s*:\s*([\s\S]*)$/.exec(line) ?? []
    if (name === '') throw usageError(`${file} has a line that is no field: ${line.slice(0, 60)}`)
    const known = name.startsWith('"') ? String(JSON.parse(name)) : name
    try {
      fields[known] = parsedJson(value)
    } catch {
      // what people write without quotes is text
      fields[known] = value.trim()
    }
  }
  const { [bodyMember]: body, ...rest } = fields
  if (typeof body !== 'string') throw usageError(`${file} needs ${bodyMember}, the name of the field that its text is.`)
  return { fields: { ...rest, [body]: (below ?? '').replace(/\n$/, '') }, body }
}

const read = async (files: Inside, file: string) => {
  const text = (await files.read(file)).replaceAll('\r\n', '\n')
  try {
    if (file.endsWith('.md')) return { text, ...parsedMarkdown(text, file) }
    return { text, fields: objectOf(parsedJson(text), file), body: undefined }
  } catch (error) {
    if (error instanceof CliError) throw error
    throw usageError(`${file} is not JSON: ${(error as Error).message}`)
  }
}

const foldersOf = async (files: Inside, at: string): Promise<readonly string[]> => {
  const entries = await files.list(at)
  const link = entries.find(({ isFolder, isFile }) => !isFolder && !isFile)
  // a link that is passed over would look like an entry that is not there
  if (link) throw usageError(`${join(at, link.name)} is a link: content is read and written within this folder alone.`)
  return entries.filter(({ isFolder }) => isFolder).map(({ name }) => name)
}

/** The files of a folder by what they are a language of, and for each Markdown file the field that is its text. */
export const readContent = async (folder: string) => {
  const files = inside(folder)
  const found = new Map<string, ContentFile & { readonly body: string | undefined }>()
  const problems: CliError[] = []
  for (const typeFolder of await foldersOf(files, root)) {
    for (const keyFolder of await foldersOf(files, join(root, typeFolder))) {
      const at = join(root, typeFolder, keyFolder)
      await foldersOf(files, at)
      for (const { name, isFile } of await files.list(at)) {
        const [, locale = ''] = /^(.*)\.(?:json|md)$/.exec(name) ?? []
        if (!isFile || locale === '') continue
        const place = { type: keyOf(typeFolder), key: keyOf(keyFolder), locale }
        const file = join(at, name)
        try {
          if (!isName(place.type) || !isName(place.key) || !isLocale(locale))
            throw usageError(`${file} is no language of an entry: content/<type>/<key>/<language>.json or .md`)
          const twin = found.get(nameOf(place))
          if (twin) throw usageError(`${twin.file} and ${file} are the same language.`)
          found.set(nameOf(place), { ...place, file, ...(await read(files, file)) })
        } catch (error) {
          if (!(error instanceof CliError) || error.exit !== exits.usage || error.code !== 'USAGE') throw error
          problems.push(error)
        }
      }
    }
  }
  if (problems.length > 0) throw filesError(problems.map(({ message }) => message))
  return found
}

/** The file of a language, in Markdown where it is to be or has been so. */
export const fileFor = (place: Place, fields: Content, body: string | undefined): { file: string; text: string } => {
  // they become a path: a server must not choose where on this machine
  if (!isName(place.type) || !isName(place.key) || !isLocale(place.locale))
    throw new Error(`"${nameOf(place)}" is no language of an entry.`)
  const at = join(root, folderOf(place.type), folderOf(place.key), place.locale)
  const of = bodyOf(fields, body)
  return of === undefined
    ? { file: `${at}.json`, text: jsonText(fields) }
    : { file: `${at}.md`, text: markdownText(fields, of) }
}

export type Versions = Readonly<Record<string, number>>

export const readVersions = async (folder: string): Promise<Versions> => {
  try {
    return objectOf(JSON.parse(await inside(folder).read(versionsFile)), versionsFile) as Versions
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    if (error instanceof SyntaxError) throw usageError(`${versionsFile} is not JSON: ${error.message}`)
    throw error
  }
}

export const writeVersions = (folder: string, versions: Versions): Promise<void> =>
  inside(folder).write(versionsFile, jsonText(versions))
