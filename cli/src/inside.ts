import { lstat, mkdir, readdir, readFile, realpath, rm } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { CliError, exits } from './exit.ts'
import { writeWhole } from './manifest.ts'

/**
 * Files of one folder. A repository may hold links, and a server names the files: neither chooses where on this machine something is read, written or
 * deleted. So a path of the folder on which a link stands, at any level, is refused.
 */
export type Inside = {
  list(
    folder: string,
  ): Promise<readonly { readonly name: string; readonly isFolder: boolean; readonly isFile: boolean }[]>
  read(file: string): Promise<string>
  write(file: string, text: string): Promise<void>
  remove(file: string): Promise<void>
}

const isMissing = (error: unknown) => (error as NodeJS.ErrnoException).code === 'ENOENT'

const outside = (file: string, what: string) =>
  new CliError(
    'OUTSIDE_FOLDER',
    exits.usage,
    `${file} ${what}: definitions are read and written within this folder alone. Nothing was changed.`,
    'Put the file or the folder itself there.',
  )

export const inside = (folder: string): Inside => {
  /** The place of a file, if no link stands on the way. Junctions of Windows are links to lstat. */
  const placeOf = async (file: string): Promise<string> => {
    const names = file.split(/[\\/]/)
    if (names.some((name) => name === '' || name === '.' || name === '..'))
      throw outside(file, 'leads out of the folder')
    let place = folder
    for (const name of names) {
      place = join(place, name)
      const found = await lstat(place).catch((error) => {
        if (!isMissing(error)) throw error
      })
      if (!found) break
      if (found.isSymbolicLink()) throw outside(place.slice(join(folder, sep).length), 'is a link')
    }
    return join(folder, ...names)
  }
  /** What became a link since it was looked at is found by where its folder really is. */
  const within = async (file: string, place: string): Promise<string> => {
    const [base, real] = [await realpath(folder), await realpath(dirname(place))]
    if (real !== join(base, dirname(file)) && real.toLowerCase() !== join(base, dirname(file)).toLowerCase())
      throw outside(file, 'leads out of the folder')
    return place
  }
  return {
    async list(at) {
      const place = await placeOf(at)
      const entries = await readdir(place, { withFileTypes: true }).catch((error) => {
        if (isMissing(error)) return []
        throw error
      })
      // a link that is passed over would look like a file that is not there
      const link = entries.find(
        (entry) => entry.isSymbolicLink() && (entry.name.endsWith('.json') || at === 'definitions'),
      )
      if (link) throw outside(join(at, link.name), 'is a link')
      return entries.map((entry) => ({ name: entry.name, isFolder: entry.isDirectory(), isFile: entry.isFile() }))
    },
    read: async (file) => readFile(await placeOf(file), 'utf8'),
    async write(file, text) {
      const place = await placeOf(file)
      await mkdir(dirname(place), { recursive: true })
      await writeWhole(await within(file, place), text)
    },
    remove: async (file) => rm(await within(file, await placeOf(file))),
  }
}
