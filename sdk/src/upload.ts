import type { App } from './app.ts'
import { isTemporary, TrellisError } from './errors.ts'
import { commitMediaUpload, uploadMedia } from './generated/client.ts'
import type { MediaReply } from './generated/schemas.ts'
import { platform, type Signal } from './platform.ts'
import { backoff, pause } from './transport.ts'

/** What is uploaded: a Blob or File, or bytes. */
export type Bytes =
  | Uint8Array
  | { readonly size: number; readonly type?: string; slice(start: number, end: number): unknown }

export type UploadOptions = {
  readonly filename: string
  /** Of a Blob or File its own. */
  readonly type?: string | undefined
  /** Anybody reads the file at its `public_url`: an avatar, a picture in a link. */
  readonly isPublic?: boolean | undefined
  readonly onProgress?: ((progress: { readonly sent: number; readonly total: number }) => void) | undefined
  readonly signal?: Signal | undefined
  /** Bytes of a part, 1 MB: progress is told after each, and a break repeats no more than one. */
  readonly partSize?: number | undefined
}

/** The file, as it was committed; `public_url` of a public one. */
export type Uploaded = MediaReply['data'] & { readonly is_public?: boolean; readonly public_url?: string | null }

type Part = { readonly status: number; readonly offset: number | undefined }

const numberOf = (text: string | null) => (text === null || text === '' ? undefined : Number(text))

/** One PUT through XMLHttpRequest, the only way to see how far it is in browsers and React Native. */
const putWithProgress = (
  url: string,
  type: string,
  bytes: unknown,
  told: (sent: number) => void,
  signal?: Signal,
): Promise<Part> =>
  new Promise((resolve, reject) => {
    const Made = platform.XMLHttpRequest
    if (!Made) return reject(new TypeError('This platform has no XMLHttpRequest.'))
    const request = new Made()
    request.open('PUT', url)
    request.setRequestHeader('content-type', type)
    request.upload.onprogress = ({ loaded }) => told(loaded)
    const stop = () => {
      request.abort()
      reject(new TrellisError('ABORTED', 'The upload was aborted.'))
    }
    request.onload = () => {
      signal?.removeEventListener('abort', stop)
      resolve({ status: request.status, offset: numberOf(request.getResponseHeader('upload-offset')) })
    }
    request.onerror = () => {
      signal?.removeEventListener('abort', stop)
      reject(new TrellisError('NETWORK_ERROR', 'The upload has broken off.'))
    }
    if (signal?.aborted) return stop()
    signal?.addEventListener('abort', stop)
    request.send(bytes)
  })

/**
 * Uploads a file and commits it. To the server's own storage it goes in parts, and goes on behind the last one that arrived when the connection
 * breaks; to an S3 storage in one piece.
 */
export const upload = async (app: App, bytes: Bytes, options: UploadOptions): Promise<Uploaded> => {
  const { transport, send } = app.inside
  const { filename, onProgress, signal, partSize = 1_048_576 } = options
  const total = bytes instanceof Uint8Array ? bytes.length : bytes.size
  const type = options.type ?? ('type' in bytes && bytes.type ? bytes.type : 'application/octet-stream')
  const aborting = signal ? { signal } : {}
  const file = { filename, mime_type: type, size_bytes: total, ...(options.isPublic ? { is_public: true } : {}) }
  const registered = await send(uploadMedia, { body: file, ...aborting })
  const { data, upload_url: url } = registered.body
  let told = 0
  const tell = (sent: number) => {
    if (sent <= told) return
    told = sent
    onProgress?.({ sent, total })
  }
  const slice = (start: number, end: number): unknown =>
    bytes instanceof Uint8Array ? bytes.subarray(start, end) : bytes.slice(start, end)

  const put = async (headers: Record<string, string>, body: unknown): Promise<Part> => {
    try {
      const init = {
        method: 'PUT',
        headers: { 'content-type': type, ...headers },
        body: body as never,
        ...(aborting as object),
      }
      const reply = await transport.fetch(url, init)
      await reply.text()
      return { status: reply.status, offset: numberOf(reply.headers.get('upload-offset')) }
    } catch (cause) {
      if (signal?.aborted) throw new TrellisError('ABORTED', 'The upload was aborted.', { cause })
      throw new TrellisError('NETWORK_ERROR', 'The upload has broken off.', { cause })
    }
  }
  const refused = (status: number) =>
    new TrellisError('UNEXPECTED_ANSWER', `The storage answered ${status}.`, { status })

  const putParts = async () => {
    let start = 0
    let failures = 0
    while (start < total) {
      const end = Math.min(total, start + partSize)
      try {
        const { status, offset } = await put(
          { 'content-range': `bytes ${start}-${end - 1}/${total}` },
          slice(start, end),
        )
        if (status !== 308 && status >= 300) throw refused(status)
        start = status === 308 ? (offset ?? end) : total
        failures = 0
        tell(start)
      } catch (error) {
        failures += 1
        if (failures > 3 || !isTemporary(error)) throw error
        // a part that has arrived is answered with where to go on: it is safe to send it again
        await pause(backoff(failures, transport.random), signal)
      }
    }
  }

  if (url.startsWith(`${transport.root}/`)) await putParts()
  else {
    const whole = slice(0, total)
    const { status } = platform.XMLHttpRequest
      ? await putWithProgress(url, type, whole, tell, signal)
      : await put({}, whole)
    if (status >= 300) throw refused(status)
    tell(total)
  }
  const body = { upload_id: data.id, asset_id: data.id }
  return (await send(commitMediaUpload, { body, repeatable: true, ...aborting })).body.data
}
