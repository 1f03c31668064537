import { type ChildProcess, fork } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import type { ImageReply, ImageRequest, Operation } from '#server/media/image_work.ts'
import { outOfMemory } from '#server/media/image_work.ts'

/** Work on an image that failed. `isFinal`: it would fail again. */
export class ImageError extends Error {
  readonly code: string
  readonly isFinal: boolean
  constructor(code: string, message: string, isFinal: boolean) {
    super(message)
    this.code = code
    this.isFinal = isFinal
  }
}

export type ImageResult = Extract<ImageReply, { ok: true }> & { readonly file: string }

export type Images = {
  /** Changes an image and hands the result to `use`; the file is gone afterwards. Throws an ImageError. */
  change<T>(
    source: () => Promise<Readable>,
    operations: readonly Operation[],
    use: (result: ImageResult) => Promise<T>,
  ): Promise<T>
  /** Removes files that a crash left, at most once an hour. */
  clean(): Promise<void>
  close(): Promise<void>
}

export type ImagesOptions = {
  /** Where files are while they are worked on. */
  readonly folder: string
  readonly processes: number
  /** Longest work on one image. */
  readonly timeoutMs?: number
  /** The program of the processes; tests pass others. */
  readonly program?: string
}

type Work = {
  readonly request: ImageRequest
  readonly resolve: (reply: ImageReply) => void
  readonly reject: (error: Error) => void
}

/** So many wait at most: who comes then is told to come later. */
const mostWaiting = 200
/** So many images are on the disk for each process: the one that it works on and the next ones. */
const copiesOfProcess = 4
const idleMs = 30_000
/** Older than any work: what the crash of a server left. */
const leftMs = 3_600_000

const removeLeft = async (folder: string): Promise<void> => {
  await mkdir(folder, { recursive: true })
  for (const name of await readdir(folder)) {
    const found = await stat(join(folder, name)).catch(() => null)
    if (found && found.mtimeMs < Date.now() - leftMs) await rm(join(folder, name), { recursive: true, force: true })
  }
}

/**
 * A few processes that change images. A hostile image harms only the process that reads it: that one is killed when it takes too long,
 * ends itself when it needs too much memory, and another takes its place.
 */
export const createImages = ({ folder, processes, timeoutMs = 30_000, program }: ImagesOptions): Images => {
  const file = program ?? fileURLToPath(new URL('./image_worker.ts', import.meta.url))
  const waiting: Work[] = []
  const all = new Set<ChildProcess>()
  const idle = new Map<ChildProcess, NodeJS.Timeout>()
  let isClosed = false
  let cleaned = Promise.resolve()
  let cleanedAt = Number.NEGATIVE_INFINITY
  const clean = (): Promise<void> => {
    if (Date.now() - cleanedAt < leftMs) return cleaned
    cleanedAt = Date.now()
    cleaned = removeLeft(folder)
    return cleaned
  }

  const start = (): ChildProcess => {
    const child = fork(file, {
      // nothing of ours is for these processes
      env: { PATH: process.env['PATH'] ?? '' },
      execArgv: ['--max-old-space-size=256'],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    all.add(child)
    child.once('exit', () => {
      all.delete(child)
      clearTimeout(idle.get(child))
      idle.delete(child)
      next()
    })
    return child
  }
  const rest = (child: ChildProcess) => {
    child.unref()
    child.channel?.unref()
    idle.set(child, setTimeout(() => child.kill('SIGKILL'), idleMs).unref())
  }
  const wake = (): ChildProcess | null => {
    const [rested] = idle.keys()
    if (!rested) return all.size < processes ? start() : null
    clearTimeout(idle.get(rested))
    idle.delete(rested)
    rested.ref()
    rested.channel?.ref()
    return rested
  }
  const next = (): void => {
    if (isClosed || waiting.length === 0) return
    const child = wake()
    if (child) work(child, waiting.shift() as Work)
  }
  const work = (child: ChildProcess, { request, resolve, reject }: Work) => {
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      child.kill('SIGKILL')
    }, timeoutMs)
    const over = () => {
      clearTimeout(timer)
      child.off('message', answered).off('exit', gone).off('error', failed)
    }
    const answered = (reply: unknown) => {
      over()
      resolve(reply as ImageReply)
      rest(child)
      next()
    }
    const gone = (_code: number | null, signal: string | null) => {
      over()
      if (isLate) reject(new ImageError('IMAGE_TIMEOUT', 'The work took too long.', false))
      else if (signal === outOfMemory)
        reject(new ImageError('IMAGE_TOO_LARGE', 'The work needs too much memory.', true))
      else reject(new ImageError('IMAGE_FAILED', 'The work was broken off.', false))
    }
    const failed = () => child.kill('SIGKILL')
    child.on('message', answered).on('exit', gone).on('error', failed)
    child.send(request, (error) => {
      if (error) child.kill('SIGKILL')
    })
  }
  const ask = (request: ImageRequest): Promise<ImageReply> => {
    if (isClosed) return Promise.reject(new ImageError('IMAGES_BUSY', 'The server is stopping.', false))
    return new Promise((resolve, reject) => {
      waiting.push({ request, resolve, reject })
      next()
    })
  }

  let copies = 0
  const turns: { readonly resolve: () => void; readonly reject: (error: Error) => void }[] = []
  /** Waits before the image is copied: those that wait take no room on the disk. */
  const turn = async (): Promise<void> => {
    if (isClosed || turns.length >= mostWaiting)
      throw new ImageError('IMAGES_BUSY', 'Too many images wait to be changed.', false)
    if (copies < processes * copiesOfProcess) copies += 1
    else await new Promise<void>((resolve, reject) => turns.push({ resolve, reject }))
  }
  const turnOver = () => {
    const following = turns.shift()
    if (following) following.resolve()
    else copies -= 1
  }
  const inTurn = async <T>(work: () => Promise<T>): Promise<T> => {
    await turn()
    try {
      return await work()
    } finally {
      turnOver()
    }
  }

  return {
    change: (source, operations, use) =>
      inTurn(async () => {
        await clean()
        const at = await mkdtemp(join(folder, 'image-'))
        try {
          const [input, output] = [join(at, 'input'), join(at, 'output')]
          // a storage that stalls must not hold a turn
          await pipeline(await source(), createWriteStream(input), { signal: AbortSignal.timeout(timeoutMs) }).catch(
            (error: Error) => {
              if (error.name !== 'AbortError') throw error
              throw new ImageError('IMAGE_TIMEOUT', 'The image did not come in time.', false)
            },
          )
          const reply = await ask({ input, output, operations })
          if (!reply.ok) throw new ImageError(reply.code, reply.message, true)
          return await use({ ...reply, file: output })
        } finally {
          await rm(at, { recursive: true, force: true })
        }
      }),
    clean,
    async close() {
      isClosed = true
      for (const { reject } of [...turns.splice(0), ...waiting.splice(0)])
        reject(new ImageError('IMAGES_BUSY', 'The server is stopping.', false))
      await Promise.all(
        [...all].map(
          (child) =>
            new Promise<void>((resolve) => {
              child.once('exit', () => resolve())
              child.kill('SIGKILL')
            }),
        ),
      )
    },
  }
}
