import { Readable } from 'node:stream'
import type { UploadLink } from '#server/media/links.ts'
import { checkPart, type PartStorage, partName, partsAmong, reached } from '#server/media/parts.ts'
import { versionOf } from '#server/media/storage.ts'

/** What is done with single names of a storage. */
export type Names = {
  /** Names below a prefix that ends with a slash, without it. */
  list(prefix: string): Promise<readonly string[]>
  size(key: string): Promise<number | null>
  put(key: string, body: Readable, size: number, mimeType: string): Promise<void>
  read(key: string): Promise<Readable>
  remove(keys: readonly string[]): Promise<void>
}

/**
 * Parts of an upload as objects of their own beside it, and the last one makes the whole of them, which has 50 MB at most. A multipart upload of S3 takes
 * no part of less than 5 MB, and what nobody completes would have to be found and ended by a second kind of cleanup.
 */
export const createS3Parts = (names: Names): PartStorage => {
  const folderOf = ({ projectId, assetId }: UploadLink) => `${projectId}/uploads/${assetId}/`
  const partsOf = async (upload: UploadLink) => partsAmong(await names.list(folderOf(upload)), upload.version)
  type Parts = Awaited<ReturnType<typeof partsOf>>

  const bytesOf = async function* (folder: string, parts: Parts) {
    let to = 0
    for (const { name, start, end } of parts) {
      if (end < to) continue
      let skip = to - start
      for await (const piece of await names.read(folder + name)) {
        const bytes = piece as Buffer
        if (skip < bytes.length) yield bytes.subarray(skip)
        skip = Math.max(0, skip - bytes.length)
      }
      to = end + 1
    }
  }
  /** The size of an upload that is whole, which is made of its parts where the last one has come; else up to where they reach. */
  const finish = async (upload: UploadLink): Promise<number> => {
    const folder = folderOf(upload)
    const whole = await names.size(folder + upload.version)
    if (whole !== null) return whole
    const parts = await partsOf(upload)
    const total = parts[0]?.total
    if (total === undefined || reached(parts) < total) return reached(parts)
    await names.put(folder + upload.version, Readable.from(bytesOf(folder, parts)), total, upload.mimeType)
    await names.remove(parts.map(({ name }) => folder + name))
    return total
  }
  return {
    async receivePart(upload, source, start, end, total) {
      checkPart(await partsOf(upload), total)
      const key = folderOf(upload) + partName(upload.version, start, end, total)
      await names.put(key, source, end - start + 1, 'application/octet-stream')
      return finish(upload)
    },
    offset: finish,
    async discard(upload) {
      const folder = folderOf(upload)
      const parts = await partsOf(upload)
      await names.remove([upload.version, ...parts.map(({ name }) => name)].map((name) => folder + name))
    },
    async discardFormer(upload) {
      const folder = folderOf(upload)
      const former = (await names.list(folder)).filter((name) => versionOf(name) !== upload.version)
      if (former.length > 0) await names.remove(former.map((name) => folder + name))
    },
  }
}
