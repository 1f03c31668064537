import { dataOf } from '#server/database/database.ts'
import { ApiError } from '#server/errors.ts'
import type { Operation } from '#server/media/image_work.ts'
import { ImageError, type ImageResult } from '#server/media/images.ts'
import { Stopped } from '#server/stopping.ts'
import { outboxTask, type TenantContext } from '#workers/task.ts'

type Begun = {
  readonly asset_id: string
  readonly version: string
  readonly operations: readonly Operation[]
  readonly is_thumbnail: boolean
  readonly result_id: string
  readonly result_version: string
}

/** The bytes are stored before the database has the asset that they belong to: what a crash leaves between is removed by media__clean. */
const store = async ({ call, projectId, services }: TenantContext, jobId: string, job: Begun, result: ImageResult) => {
  const { storage } = services.media
  const mime_type = `image/${result.format}`
  const name = job.is_thumbnail
    ? { projectId, assetId: job.asset_id, object: `${job.version}.thumbnail.webp` }
    : { projectId, assetId: job.result_id, object: job.result_version }
  await storage.write(name, result.file, mime_type)
  const project = await services.projectCache.byProject(projectId)
  const isKept = dataOf<boolean>(
    await call('media_job_succeed', {
      job_id: jobId,
      result_id: job.result_id,
      result_version: job.result_version,
      mime_type,
      ending: result.format === 'jpeg' ? 'jpg' : result.format,
      size_bytes: result.size,
      is_free: project?.effectiveTier === 'free',
    }).catch(async (error: unknown) => {
      await storage.remove(projectId, job.result_id)
      throw error
    }),
  )
  // the asset may live on with other bytes
  if (!isKept) await storage.removeObject(name)
}

const failureOf = (error: unknown): { code: string; message: string; is_final: boolean } => {
  if (error instanceof ImageError) return { code: error.code, message: error.message, is_final: error.isFinal }
  if (error instanceof ApiError && error.status < 500)
    return { code: error.code, message: error.message, is_final: true }
  return { code: 'IMAGE_FAILED', message: 'The file could not be read or stored.', is_final: false }
}

/** How long a job waits when too many images wait before it. */
const waitMs = 15_000

/** Runs an image job. A failure that may pass is tried three times, by the back-off of the outbox. */
export const mediaJob = outboxTask(
  'media__job',
  async (context, { key }) => {
    const { step, call, projectId, services } = context
    const job = dataOf<Begun | null>(await step('media_job_begin', { job_id: key }))
    if (!job) return null
    const { storage, images } = services.media
    const source = () => storage.read({ projectId, assetId: job.asset_id, object: job.version })
    try {
      const share = { projectId, owner: 'jobs' }
      await images.change(source, job.operations, (result) => store(context, String(key), job, result), share)
      return null
    } catch (error) {
      if (error instanceof Stopped) throw error
      if (error instanceof ImageError && error.code === 'IMAGES_BUSY') {
        // the state of the server, and no fault of the image: it costs no attempt
        await call('media_job_wait', { job_id: key })
        return new Date(services.now().getTime() + waitMs)
      }
      const isOver = dataOf<boolean>(await call('media_job_fail', { job_id: key, ...failureOf(error) }))
      if (isOver) return null
      throw error
    }
  },
  { urgency: 'background', atOnce: 2 },
)
