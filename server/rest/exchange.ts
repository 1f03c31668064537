import { Readable } from 'node:stream'
import type { Dispatcher, Pool } from 'undici'

export type Exchanged = {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Whole, if it is not large. */
  readonly body: Buffer | Readable
}

/** A response of up to this size is collected, and sent on in one write; of a larger one this much is held at a time. */
const collectedBytes = 262_144

/**
 * One request of PostgREST. undici's own `request` makes two streams for each response, which cost more than all else that the REST access does: most
 * responses are smaller than what a socket holds. Rejects when PostgREST does not answer.
 */
export const exchange = (http: Pool, options: Dispatcher.DispatchOptions): Promise<Exchanged> =>
  new Promise((resolve, reject) => {
    let started: Pick<Exchanged, 'status' | 'headers'> = { status: 0, headers: {} }
    let collected: Buffer[] = []
    let size = 0
    let stream: Readable | undefined
    let isOver = false
    const streamed = (controller: Dispatcher.DispatchController) =>
      new Readable({
        highWaterMark: collectedBytes,
        read: () => controller.resume(),
        destroy(error, done) {
          if (!isOver) controller.abort(error ?? new Error('the client has disconnected'))
          done(error)
        },
      })
    http.dispatch(options, {
      onRequestStart: () => undefined,
      onResponseStart(_controller, status, headers) {
        started = { status, headers }
      },
      onResponseData(controller, chunk) {
        if (!stream) {
          collected.push(chunk)
          size += chunk.length
          if (size <= collectedBytes) return
          stream = streamed(controller)
          for (const part of collected) stream.push(part)
          collected = []
          controller.pause()
          resolve({ ...started, body: stream })
        } else if (!stream.push(chunk)) controller.pause()
      },
      onResponseEnd() {
        isOver = true
        if (stream) stream.push(null)
        else resolve({ ...started, body: collected.length === 1 ? (collected[0] as Buffer) : Buffer.concat(collected) })
      },
      onResponseError(_controller, error) {
        isOver = true
        if (stream) stream.destroy(error)
        else reject(error)
      },
    })
  })
