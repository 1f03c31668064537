import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Manifest, manifestName } from './settings.ts'

/** Whole or not at all: a program that is ended leaves no half of a file. */
export const writeWhole = async (file: string, text: string): Promise<void> => {
  await mkdir(dirname(file), { recursive: true })
  const making = `${file}.${process.pid}.tmp`
  try {
    await writeFile(making, text)
    await rename(making, file)
  } catch (error) {
    await rm(making, { force: true })
    throw error
  }
}

export const writeManifest = (folder: string, { url, project }: Manifest): Promise<void> =>
  writeWhole(
    join(folder, manifestName),
    `${JSON.stringify({ version: 1, ...(url ? { url } : {}), ...(project ? { project } : {}) }, null, 2)}\n`,
  )
