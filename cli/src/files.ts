import { createHash } from 'node:crypto'
import { join, relative } from 'node:path'
import { protect, restore } from './exact.ts'
import { CliError, exits, filesError, usageError } from './exit.ts'
import { type Inside, inside } from './inside.ts'

/** `{kind: {key: definition}}`, as the export of a project has them. */
export type Definitions = Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, unknown>>>>>>

/** The kind that has a folder of its own; the others are in `definitions/`. */
const collections = 'collections'
/** Names the key in a file whose name cannot be the key. */
const keyMember = '$key'
const isKind = (name: string) => /^[a-z][a-z0-9_]{0,62}$/.test(name)

/** A name that every file system takes and none takes for another one: small letters, and none of the devices of Windows. */
const isPlainName = (key: string) =>
  /^[a-z0-9_][a-z0-9_.-]{0,99}$/.test(key) && !/^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/.test(key) && !key.endsWith('.')

const fileOf = (kind: string, key: string): string => {
  const folder = kind === collections ? collections : join('definitions', kind)
  if (isPlainName(key)) return join(folder, `${key}.json`)
  const words = key
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
    .slice(0, 40)
  const hash = createHash('sha256').update(key).digest('hex').slice(0, 8)
  return join(folder, `${words || 'unnamed'}~${hash}.json`)
}

/** Members of objects in one order, so that equal definitions are equal files. */
const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(members.map(([name, one]) => [name, sorted(one)]))
}

const textOf = (key: string, definition: Readonly<Record<string, unknown>>): string => {
  const named = isPlainName(key) ? {} : { [keyMember]: key }
  return `${restore(JSON.stringify({ ...named, ...(sorted(definition) as object) }, null, 2))}\n`
}

/** Each file that the definitions make, with its text. */
const filesOf = (definitions: Definitions): Map<string, string> => {
  const files = new Map<string, string>()
  for (const [kind, rows] of Object.entries(definitions)) {
    // it becomes a path: a server must not choose where on this machine
    if (!isKind(kind)) throw new Error(`"${kind}" is no kind of definitions.`)
    for (const [key, definition] of Object.entries(rows)) files.set(fileOf(kind, key), textOf(key, definition))
  }
  return files
}

/** The kinds that are asked for, or all for null. */
type Kinds = readonly string[] | null

/** The definitions of some kinds. */
export const only = (definitions: Definitions, kinds: Kinds): Definitions =>
  kinds ? Object.fromEntries(Object.entries(definitions).filter(([kind]) => kinds.includes(kind))) : definitions

/** The kinds that have a folder of files. */
const foldersOf = async (files: Inside): Promise<string[]> => {
  const folders = (await files.list('definitions')).filter(({ isFolder }) => isFolder).map(({ name }) => name)
  const wrong = folders.find((kind) => !isKind(kind))
  if (wrong !== undefined) throw usageError(`definitions/${wrong} is no kind of definitions.`)
  return folders
}
export const kindsHere = (folder: string): Promise<string[]> => foldersOf(inside(folder))

/** The files of definitions in a folder, as kind and path. */
const present = async (files: Inside, kinds: Kinds): Promise<{ kind: string; file: string }[]> => {
  const found: { kind: string; file: string }[] = []
  for (const kind of [collections, ...(await foldersOf(files))]) {
    if (kinds && !kinds.includes(kind)) continue
    const at = kind === collections ? collections : join('definitions', kind)
    for (const { name, isFile } of await files.list(at)) {
      if (isFile && name.endsWith('.json')) found.push({ kind, file: join(at, name) })
    }
  }
  return found.sort((a, b) => (a.file < b.file ? -1 : 1))
}

const parsed = async (files: Inside, file: string): Promise<Record<string, unknown>> => {
  let value: unknown
  try {
    value = JSON.parse(protect(await files.read(file)))
  } catch (error) {
    if (error instanceof CliError) throw error
    throw usageError(`${file} is not JSON: ${(error as Error).message}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw usageError(`${file} must hold an object.`)
  return value as Record<string, unknown>
}

/** What the files of a folder define, and the file of each. Files that are no definitions are named together. */
export const readFiles = async (
  folder: string,
  kinds: Kinds,
): Promise<{ definitions: Definitions; count: number; fileOf: (kind: string, key: string) => string | undefined }> => {
  // without a prototype: a kind may be called constructor
  const definitions: Record<string, Record<string, Record<string, unknown>>> = Object.create(null)
  const here = inside(folder)
  const files = await present(here, kinds)
  const seen = new Map<string, string>()
  const problems: CliError[] = []
  for (const { kind, file } of files) {
    try {
      const { [keyMember]: named, ...definition } = await parsed(here, file)
      if (named !== undefined && typeof named !== 'string') throw usageError(`"${keyMember}" of ${file} must be text.`)
      const key =
        named ??
        relative(kind === collections ? collections : join('definitions', kind), file).slice(0, -'.json'.length)
      if (named === undefined && key.includes('~'))
        throw usageError(`${file} needs "${keyMember}", the key of the definition.`)
      const twin = seen.get(`${kind}/${key}`)
      if (twin) throw usageError(`${twin} and ${file} define the same ${kind}: ${key}.`)
      seen.set(`${kind}/${key}`, file)
      // a plain object has no member __proto__ of its own unless it is defined as one
      definitions[kind] ??= {}
      Object.defineProperty(definitions[kind], key, { value: definition, enumerable: true, configurable: true })
    } catch (error) {
      if (!(error instanceof CliError) || error.exit !== exits.usage || error.code !== 'USAGE') throw error
      problems.push(error)
    }
  }
  if (problems.length > 0) throw filesError(problems.map(({ message }) => message))
  return { definitions, count: files.length, fileOf: (kind, key) => seen.get(`${kind}/${key}`) }
}

export type Change = { readonly op: 'create' | 'update' | 'delete'; readonly file: string }

/** What writing these definitions would do to the files. */
export const compareFiles = async (
  folder: string,
  definitions: Definitions,
  kinds: Kinds = null,
): Promise<Change[]> => {
  const wanted = filesOf(only(definitions, kinds))
  const files = inside(folder)
  const here = new Set((await present(files, kinds)).map(({ file }) => file))
  const changes: Change[] = []
  for (const [file, text] of wanted) {
    if (!here.has(file)) changes.push({ op: 'create', file })
    // line ends that git has converted are no change
    else if ((await files.read(file)).replaceAll('\r\n', '\n') !== text) changes.push({ op: 'update', file })
  }
  for (const file of here) if (!wanted.has(file)) changes.push({ op: 'delete', file })
  return changes.sort((a, b) => (a.file < b.file ? -1 : 1))
}

/** Makes the files of a folder hold these definitions and no others; of some kinds, with the files of other kinds left alone. */
export const writeFiles = async (folder: string, definitions: Definitions, kinds: Kinds = null): Promise<Change[]> => {
  const wanted = filesOf(only(definitions, kinds))
  const changes = await compareFiles(folder, definitions, kinds)
  const files = inside(folder)
  // deletions first: where capitals make no difference, NOTES.json that goes is notes.json that comes
  for (const { op, file } of changes) if (op === 'delete') await files.remove(file)
  for (const { op, file } of changes) if (op !== 'delete') await files.write(file, wanted.get(file) ?? '')
  return changes
}
