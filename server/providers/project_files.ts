import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { uuidPattern } from '#server/http/schemas.ts'

/** A location of files of a project: its media, the files of its functions, its sites. Stored as JSON until it is purged. */
export type FileLocation = { readonly kind: 'media' | 'functions' | 'sites'; readonly path: string }

/** The files of projects, as far as the deletion of a project is concerned. */
export type ProjectFiles = {
  /** The locations that contain files of the project now; empty when nothing was ever stored. */
  locations(projectId: string): Promise<readonly FileLocation[]>
  /** Deletes all files of a location. Resolves when none are left. Idempotent, also after an interrupted run. */
  purge(projectId: string, location: FileLocation): Promise<void>
}

declare module '#server/services.ts' {
  interface Services {
    readonly files: ProjectFiles
  }
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
    // the path is read from the database: whatever its value, only the folder of this project may be deleted
    if (path !== projectId || !uuidPattern.test(path)) throw new Error('not the folder of this project')
    await rm(join(folder, path), { recursive: true, force: true })
  },
})
