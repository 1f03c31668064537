import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { uuidPattern } from '#server/http/schemas.ts'

/** One place that holds files of a project: its media, what its functions wrote, its sites. Kept as JSON until it is empty. */
export type FileLocation = { readonly kind: 'media' | 'functions' | 'sites'; readonly path: string }

/** Where files of projects are, as far as the deletion of a project must know. */
export type ProjectFiles = {
  /** The places that hold something of the project now; none when nothing was ever stored. */
  locations(projectId: string): Promise<readonly FileLocation[]>
  /** Deletes all that is at a place. Done when nothing is left; safe to do twice, and again when it was broken off. */
  purge(projectId: string, location: FileLocation): Promise<void>
}

/** Files under DATA_DIR/media, in a folder for each project. */
export const createProjectFiles = (folder: string): ProjectFiles => ({
  async locations(projectId) {
    const found = await readdir(join(folder, projectId)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return []
      throw error
    })
    return found.length > 0 ? [{ kind: 'media', path: projectId }] : []
  },
  async purge(projectId, { path }) {
    // a path comes out of the database: whatever it says, only this project's folder is ever deleted
    if (path !== projectId || !uuidPattern.test(path)) throw new Error('not the folder of this project')
    await rm(join(folder, path), { recursive: true, force: true })
  },
})
