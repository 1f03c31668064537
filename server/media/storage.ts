import type { Readable } from 'node:stream'
import type { ObjectLink, UploadLink } from '#server/media/links.ts'
import type { ProjectFiles } from '#server/providers/project_files.ts'

/** The most bytes of a file: 50 MB. */
export const mostBytes = 52_428_800

/** Stored bytes, whose name never changes what it stands for. */
export type StoredObject = { readonly size: number; readonly modifiedAt: Date }

/** An upload that came, before it is committed. The type is known where the storage keeps it. */
export type ReceivedUpload = { readonly size: number; readonly mimeType: string | null }

/** One name in a storage, as the daily cleanup reads it. */
export type StoredName = {
  readonly path: string
  readonly assetId: string
  readonly version: string
  readonly isUpload: boolean
  readonly modifiedAt: Date
}

type Version = Pick<UploadLink, 'projectId' | 'assetId' | 'version'>
export type Name = Pick<ObjectLink, 'projectId' | 'assetId' | 'object'>

/**
 * Where bytes are. Uploads and objects are named by the ids of project and asset and by a version, never by a name of a caller. An upload
 * becomes the object of its version when it is committed, once, and no later upload changes it.
 */
export type MediaStorage = {
  /** Whether an upload URL ends with the commit; else it may be used until it expires, without effect. */
  readonly endsUploads: boolean
  /** A URL of the storage itself to upload to; null: one of this server. */
  uploadUrl(upload: UploadLink, expiresAt: Date): Promise<string> | null
  /** A URL of the storage itself to download from, by GET, or by HEAD where `isHead`; null: this server sends the bytes. */
  downloadUrl(object: ObjectLink, expiresAt: Date, headers: DownloadHeaders, isHead?: boolean): Promise<string> | null
  /**
   * Makes the object of this version of what arrived, and answers what it is. `check` sees it first, and throws what it refuses. Null when
   * nothing has arrived. Idempotent, also after an interrupted run.
   */
  promote(upload: Version, check: (received: ReceivedUpload) => void): Promise<ReceivedUpload | null>
  /** Null when there is no such object. */
  stat(name: Name): Promise<StoredObject | null>
  /** The bytes from `start` to `end`, both included. */
  read(name: Name, start?: number, end?: number): Promise<Readable>
  /** Stores a file of this machine, which stays. */
  write(name: Name, file: string, mimeType: string): Promise<void>
  /** Removes everything of an asset. Resolves when nothing is left. */
  remove(projectId: string, assetId: string): Promise<void>
  /** Removes one object; it is no error when there is none. */
  removeObject(name: Name): Promise<void>
  /** Removes names that `list` gave. */
  removeNames(projectId: string, paths: readonly string[]): Promise<void>
  /** Removes an object with everything that was derived from it. */
  removeVersion(projectId: string, assetId: string, version: string): Promise<void>
  /** Names of what was derived from objects of an asset. */
  derived(projectId: string, assetId: string): Promise<readonly string[]>
  /** Everything that is stored for a project, in parts of some hundreds. */
  list(projectId: string): AsyncIterable<readonly StoredName[]>
  readonly files: ProjectFiles
  close(): Promise<void>
}

export type DownloadHeaders = {
  readonly contentType: string
  readonly disposition: string
  readonly cacheControl: string
}

/** `<version>.<what>.<ending>` is derived from the version. */
export const versionOf = (object: string): string => object.split('.')[0] ?? ''
