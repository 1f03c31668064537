import { type ChildProcess, fork } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import type { ImageReply, ImageRequest, Operation } from '#server/media/image_work.ts'
import { outOfMemory } from '#server/media/image_work.ts'
import { createShares, createTurns, type Share } from '#server/media/shares.ts'

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
  /**
   * Changes an image and hands the result to `use`; the file is gone afterwards. Throws an ImageError. Once `signal` is aborted a turn that has not come yet
   * is given up.
   */
  change<T>(
    source: () => Promise<Readable>,
    operations: readonly Operation[],
    use: (result: ImageResult) => Promise<T>,
    share: Share,
    signal?: AbortSignal,
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
  readonly share: Share
  readonly request: ImageRequest
  readonly resolve: (reply: ImageReply) => void
  readonly reject: (error: Error) => void
}

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
  const shares = createShares(processes)
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
    if (isClosed) return
    const chosen = shares.choose(waiting)
    const child = chosen ? wake() : null
    if (!chosen || !child) return
    waiting.splice(waiting.indexOf(chosen), 1)
    work(child, chosen)
    next()
  }
  const work = (child: ChildProcess, { share, request, resolve, reject }: Work) => {
    const ended = shares.begin(share)
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      child.kill('SIGKILL')
    }, timeoutMs)
    const over = () => {
      ended()
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
  const ask = (request: ImageRequest, share: Share): Promise<ImageReply> => {
    if (isClosed) return Promise.reject(new ImageError('IMAGES_BUSY', 'The server is stopping.', false))
    return new Promise((resolve, reject) => {
      waiting.push({ share, request, resolve, reject })
      next()
    })
  }

  // those that wait for their turn are not copied yet: they take no room on the disk
  const turns = createTurns(processes * copiesOfProcess)
  const inTurn = async <T>(share: Share, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> => {
    if (isClosed) throw new ImageError('IMAGES_BUSY', 'The server is stopping.', false)
    const end = await turns.take(share, signal).catch((error: Error) => {
      throw new ImageError('IMAGES_BUSY', error.message, false)
    })
    try {
      return await work()
    } finally {
      end()
    }
  }

  return {
    change: (source, operations, use, share, signal) =>
      inTurn(share, signal, async () => {
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
          const reply = await ask({ input, output, operations }, share)
          if (!reply.ok) throw new ImageError(reply.code, reply.message, true)
          return await use({ ...reply, file: output })
        } finally {
          await rm(at, { recursive: true, force: true })
        }
      }),
    clean,
    async close() {
      isClosed = true
      turns.close('The server is stopping.')
      for (const { reject } of waiting.splice(0))
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
