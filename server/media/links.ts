import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Secrets } from '#server/secrets.ts'

/** Bytes that a download URL leads to. `object` is a version, or a name of what was derived from it. */
export type ObjectLink = {
  readonly projectId: string
  readonly key: string
  readonly assetId: string
  readonly object: string
  readonly mimeType: string
  /** The file's own name, under which it is saved. */
  readonly filename: string
  /** How an image is to be changed: null as it is. */
  readonly variant: string | null
}

/** Bytes that an upload URL takes. */
export type UploadLink = {
  readonly projectId: string
  readonly key: string
  readonly assetId: string
  readonly version: string
  readonly mimeType: string
  /** The exact size, or null: any up to the limit. */
  readonly sizeBytes: number | null
}

export type Verified = ({ readonly op: 'get' } & ObjectLink) | ({ readonly op: 'put' } & UploadLink)

export type Links = {
  /** What marks the places of links in a reply of SQL: as long as nobody can guess it, no text of a caller looks like a link. */
  nonce(): string
  /** Puts signed download URLs in the places of internal.media_link. */
  render(body: string, nonce: string, projectId: string): string
  download(link: ObjectLink, expiresAt: Date): string
  upload(link: UploadLink, expiresAt: Date): string
  /** What a URL of ours leads to: null when it was altered, has expired or is for another method. */
  verify(url: string, method: string): Verified | null
}

const prefix = '/storage/media/'
export const publicPrefix = '/m/'
/** Download URLs in answers: they live for an hour at least, and stay the same for a quarter of one, so that caches know them again. */
const leastSeconds = 3600
const stepSeconds = 900

const encoded = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
const encodedPath = (key: string) => key.split('/').map(encoded).join('/')

/** Signed URLs of this server: HMAC-SHA-256 over the whole path and query, with a key that derives from SECRETS_KEY. */
export const createLinks = (secrets: Secrets, publicUrl: () => string, now: () => Date): Links => {
  const key = secrets.derive('media urls')
  const signatureOf = (path: string) => createHmac('sha256', key).update(path).digest('base64url')
  const signed = (
    of: { projectId: string; key: string },
    fields: Readonly<Record<string, string | number>>,
    at: number,
  ) => {
    const query = Object.entries({ ...fields, expires: at }).map(([name, value]) => `${name}=${encoded(String(value))}`)
    const path = `${prefix}${of.projectId}/${encodedPath(of.key)}?${query.join('&')}`
    return `${publicUrl()}${path}&signature=${signatureOf(path)}`
  }
  const download = (link: ObjectLink, at: number) =>
    signed(
      link,
      {
        op: 'get',
        asset: link.assetId,
        object: link.object,
        type: link.mimeType,
        filename: link.filename,
        ...(link.variant === null ? {} : { variant: link.variant }),
      },
      at,
    )
  return {
    nonce: () => randomBytes(16).toString('hex'),
    render(body, nonce, projectId) {
      const at = Math.ceil((now().getTime() / 1000 + leastSeconds) / stepSeconds) * stepSeconds
      const shown = body.replaceAll(new RegExp(`"${nonce}public\\|([0-9a-f-]{36})"`, 'g'), (_, assetId: string) =>
        JSON.stringify(`${publicUrl()}${publicPrefix}${projectId}/${assetId}`),
      )
      return shown.replaceAll(new RegExp(`"${nonce}((?:[^"\\\\]|\\\\.)*)"`, 'g'), (_, json: string) => {
        const [assetId = '', object = '', mimeType = '', name = '', ...rest] = (
          JSON.parse(`"${json}"`) as string
        ).split('|')
        const filename = name.replaceAll('%7C', '|').replaceAll('%25', '%')
        return JSON.stringify(
          download({ projectId, key: rest.join('|'), assetId, object, mimeType, filename, variant: null }, at),
        )
      })
    },
    download: (link, expiresAt) => download(link, Math.floor(expiresAt.getTime() / 1000)),
    upload: (link, expiresAt) =>
      signed(
        link,
        {
          op: 'put',
          asset: link.assetId,
          version: link.version,
          type: link.mimeType,
          size: link.sizeBytes ?? 0,
        },
        Math.floor(expiresAt.getTime() / 1000),
      ),
    verify(url, method) {
      const at = url.lastIndexOf('&signature=')
      if (at < 0) return null
      const path = url.slice(0, at)
      const [given, wanted] = [Buffer.from(url.slice(at + 11)), Buffer.from(signatureOf(path))]
      if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return null
      return readSigned(path, method, now().getTime() / 1000)
    },
  }
}

const methods = { get: ['GET', 'HEAD'], put: ['PUT', 'HEAD'] }

/** Only of a path that this server has signed: what is in it has its form. */
const readSigned = (path: string, method: string, seconds: number): Verified | null => {
  const cut = path.indexOf('?')
  const query = new URLSearchParams(path.slice(cut + 1))
  const field = (name: string) => query.get(name) ?? ''
  const op = field('op') as Verified['op']
  if (Number(field('expires')) <= seconds || !methods[op].includes(method)) return null
  const [projectId = '', ...segments] = path.slice(prefix.length, cut).split('/')
  const common = {
    projectId,
    key: segments.map(decodeURIComponent).join('/'),
    assetId: field('asset'),
    mimeType: field('type'),
  }
  return op === 'get'
    ? { op, ...common, object: field('object'), filename: field('filename'), variant: query.get('variant') }
    : { op, ...common, version: field('version'), sizeBytes: Number(field('size')) || null }
}
