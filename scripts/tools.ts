import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFile, mkdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '#server/root.ts'

const files = ['package.json', 'package-lock.json']

/**
 * The folder in which the programs of `tools/` are installed, after their lockfile and without install scripts: once for each version of it, beside other
 * things that can be made again.
 */
export const installedTools = async (): Promise<string> => {
  const hash = createHash('sha256')
  for (const file of files) hash.update(await readFile(join(root, 'tools', file)))
  const folder = join(root, 'node_modules/.cache/trellis-tools', hash.digest('hex').slice(0, 16))
  if (await stat(folder).catch(() => null)) return folder
  const making = `${folder}.${process.pid}`
  await mkdir(making, { recursive: true })
  for (const file of files) await copyFile(join(root, 'tools', file), join(making, file))
  try {
    await promisify(execFile)('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: making })
    await rename(making, folder)
  } finally {
    await rm(making, { recursive: true, force: true })
  }
  return folder
}
