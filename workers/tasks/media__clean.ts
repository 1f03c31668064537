import { dataOf } from '#server/database/database.ts'
import { mostBytes, type StoredName } from '#server/media/storage.ts'
import { outboxTask, type TenantContext } from '#workers/task.ts'

type Upload = {
  readonly asset_id: string
  readonly version: string
  readonly mime_type: string
  readonly size_bytes: number | null
}

const dayMs = 86_400_000

/** Whether what is stored is what was registered: then it is committed, though nobody asked. */
const arrived = async ({ projectId, services: { media } }: TenantContext, upload: Upload): Promise<number | null> => {
  const wanted = { projectId, assetId: upload.asset_id, version: upload.version }
  const found = await media.storage.promote(wanted, () => undefined)
  if (!found || found.size === 0 || found.size > mostBytes) return null
  if (upload.size_bytes !== null && upload.size_bytes !== found.size) return null
  return found.mimeType !== null && found.mimeType !== upload.mime_type ? null : found.size
}

/** Uploads that are pending for a day: those whose file never came are deleted. */
const cleanPending = async (context: TenantContext): Promise<void> => {
  const { step, call } = context
  for (let after: string | null = null; ; ) {
    const uploads: Upload[] = dataOf(await step('media_pending_old', { after, most: 100 }))
    const never: string[] = []
    for (const upload of uploads) {
      const size = await arrived(context, upload)
      if (size === null) never.push(upload.asset_id)
      else
        await call('media_commit_late', { asset_id: upload.asset_id, version: upload.version, size_bytes: size }).catch(
          (error: { status?: number }) => {
            // its user was banned before it came, its bucket takes less than it has, or it was deleted meanwhile
            if (error.status === 403 || error.status === 413) never.push(upload.asset_id)
            else if (error.status !== 404) throw error
          },
        )
    }
    await call('media_pending_drop', { asset_ids: never })
    if (uploads.length < 100) return
    after = uploads.at(-1)?.asset_id ?? null
  }
}

/** Uploads that were to replace a file, and have not within a day. */
const endOld = async ({ step }: TenantContext): Promise<void> => {
  while (dataOf<number>(await step('media_uploads_end_old', { most: 500 })) === 500);
}

/** Bytes of no asset, of versions that were replaced, and temporary files: what crashes leave. Younger ones may be on their way. */
const cleanStored = async ({ step, projectId, services }: TenantContext): Promise<void> => {
  const { storage } = services.media
  const before = services.now().getTime() - dayMs
  for await (const names of storage.list(projectId)) {
    const old = names.filter(({ modifiedAt }) => modifiedAt.getTime() < before)
    const [temporary, lasting] = [old.filter(isTemporary), old.filter((name) => !isTemporary(name))]
    const stored = lasting.map(({ path, assetId, version, isUpload }) => ({
      path,
      asset_id: assetId,
      version,
      is_upload: isUpload,
    }))
    const unused = stored.length > 0 ? dataOf<string[]>(await step('media_unused', { stored })) : []
    await storage.removeNames(projectId, [...temporary.map(({ path }) => path), ...unused])
  }
}

/** Parts are those of an upload that has not come whole in a day. */
const isTemporary = ({ path }: StoredName) => path.endsWith('.tmp') || path.includes('.part-')

/** Daily: deletes uploads whose file never came, and removes bytes that belong to nothing, files of image work among them. */
export const mediaClean = outboxTask(
  'media__clean',
  async (context) => {
    await cleanPending(context)
    await endOld(context)
    await cleanStored(context)
    await context.services.media.images.clean()
    return null
  },
  { urgency: 'background', atOnce: 1 },
)
