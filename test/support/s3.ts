import { createHash, createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

/** An object as the server keeps it. */
export type Kept = { readonly bytes: Buffer; readonly type: string; readonly at: Date }

export type S3Server = {
  /** STORAGE_URL for it. */
  readonly url: string
  /** By bucket and key: `media/<key>`. */
  readonly objects: Map<string, Kept>
  /** Every request is answered 503 while this is true. */
  isDown: boolean
  stop(): Promise<void>
}

const partsOf = ' parts/'
const access = 'AKIDTEST'
const secret = 'a secret / with+signs='

/**
 * A server of the S3 API in memory, that verifies each signature by AWS Signature Version 4 as its documentation describes it, in the header
 * and in the query, with the time. None of our code and none of the SDK's is in it.
 */
export const startS3 = async (): Promise<S3Server> => {
  const objects = new Map<string, Kept>()
  const state = { isDown: false }
  const server = createServer(async (request, response) => {
    try {
      const body = await bodyOf(request)
      if (state.isDown) return fail(response, 503, 'SlowDown')
      const refused = verify(request, body)
      if (refused) return fail(response, 403, refused)
      answer(request, body, response, objects)
    } catch (error) {
      fail(response, 500, String(error))
    }
  })
  // ended by its own timer a connection is reset under a request that has just been sent
  server.keepAliveTimeout = 0
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return {
    url: `s3://${access}:${encodeURIComponent(secret)}@127.0.0.1:${port}/media?tls=off&region=eu-central-1`,
    objects,
    get isDown() {
      return state.isDown
    },
    set isDown(value) {
      state.isDown = value
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const bodyOf = async (request: IncomingMessage) => {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts)
}
const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest('hex')
const encoded = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)

/** Null when the signature is right, else the code of S3. */
const verify = (request: IncomingMessage, body: Buffer): string | null => {
  const url = new URL(request.url ?? '', 'http://x')
  const query = url.searchParams
  const header = /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
    request.headers.authorization ?? '',
  )
  const [credential, names, signature] = header
    ? header.slice(1)
    : [query.get('X-Amz-Credential'), query.get('X-Amz-SignedHeaders'), query.get('X-Amz-Signature')]
  const date = header ? String(request.headers['x-amz-date']) : (query.get('X-Amz-Date') ?? '')
  if (!credential || !names || !signature) return 'AccessDenied'
  const [id, day = '', region = '', service = '', end = ''] = credential.split('/')
  if (id !== access || service !== 's3' || end !== 'aws4_request' || !date.startsWith(day)) return 'InvalidAccessKeyId'
  if (!names.split(';').includes('host')) return 'AccessDenied'
  const at = Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))
  const lasts = header ? 900 : Number(query.get('X-Amz-Expires'))
  if (!(Date.now() < at + lasts * 1000) || at > Date.now() + 900_000) return 'AccessDenied'
  const hash = header ? String(request.headers['x-amz-content-sha256']) : 'UNSIGNED-PAYLOAD'
  if (/^[0-9a-f]{64}$/.test(hash) && hash !== sha256(body)) return 'XAmzContentSHA256Mismatch'
  const canonicalQuery = [...query]
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .sort()
    .join('&')
  const canonical = [
    request.method,
    url.pathname,
    canonicalQuery,
    ...names.split(';').map(
      (name) =>
        `${name}:${String(request.headers[name] ?? '')
          .trim()
          .replace(/ +/g, ' ')}`,
    ),
    '',
    names,
    hash,
  ].join('\n')
  const text = ['AWS4-HMAC-SHA256', date, `${day}/${region}/s3/aws4_request`, sha256(canonical)].join('\n')
  const key = [day, region, 's3', 'aws4_request'].reduce<string | Buffer>(
    (from, part) => hmac(from, part),
    `AWS4${secret}`,
  )
  const wanted = hmac(key, text).toString('hex')
  return signature.length === 64 && timingSafeEqual(Buffer.from(wanted), Buffer.from(signature))
    ? null
    : 'SignatureDoesNotMatch'
}

const xml = (response: ServerResponse, status: number, text: string) =>
  response.writeHead(status, { 'content-type': 'application/xml' }).end(`<?xml version="1.0" encoding="UTF-8"?>${text}`)
const fail = (response: ServerResponse, status: number, code: string) =>
  xml(response, status, `<Error><Code>${code}</Code><Message>${code}</Message></Error>`)
const tagOf = (bytes: Buffer) => `"${createHash('md5').update(bytes).digest('hex')}"`

const answer = (request: IncomingMessage, body: Buffer, response: ServerResponse, objects: Map<string, Kept>) => {
  const url = new URL(request.url ?? '', 'http://x')
  const name = decodeURIComponent(url.pathname.slice(1))
  const { method, headers } = request
  if (method === 'POST' && url.searchParams.has('delete')) {
    for (const [, key = ''] of body.toString().matchAll(/<Key>([^<]+)<\/Key>/g))
      objects.delete(`${name.replace(/\/$/, '')}/${key}`)
    return xml(response, 200, '<DeleteResult/>')
  }
  if (url.searchParams.has('uploads') || url.searchParams.has('uploadId'))
    return multipart(method, url, name, body, headers['content-type'], response, objects)
  if (method === 'GET' && url.searchParams.get('list-type') === '2') return list(url, name, response, objects)
  if (method === 'PUT' && headers['x-amz-copy-source']) return copy(headers, name, response, objects)
  if (method === 'PUT') {
    objects.set(name, { bytes: body, type: headers['content-type'] ?? 'binary/octet-stream', at: new Date() })
    return response.writeHead(200, { etag: tagOf(body) }).end()
  }
  const found = objects.get(name)
  if (!found) return method === 'HEAD' ? response.writeHead(404).end() : fail(response, 404, 'NoSuchKey')
  if (method === 'DELETE') {
    objects.delete(name)
    return response.writeHead(204).end()
  }
  return send(request, url, found, response)
}

/** Parts are kept beside the objects, under names that no bucket has, until the upload is completed or aborted. */
const multipart = (
  method: string | undefined,
  url: URL,
  name: string,
  body: Buffer,
  type: string | undefined,
  response: ServerResponse,
  objects: Map<string, Kept>,
) => {
  const id = url.searchParams.get('uploadId') ?? randomUUID()
  const beginning = `${partsOf}${id}/`
  const parts = [...objects].filter(([key]) => key.startsWith(beginning)).sort(([a], [b]) => (a < b ? -1 : 1))
  const forget = () => {
    for (const [key] of parts) objects.delete(key)
  }
  if (method === 'POST' && url.searchParams.has('uploads')) {
    objects.set(beginning, { bytes: Buffer.alloc(0), type: type ?? 'binary/octet-stream', at: new Date() })
    return xml(
      response,
      200,
      `<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`,
    )
  }
  const [begun] = parts
  if (!begun) return fail(response, 404, 'NoSuchUpload')
  if (method === 'PUT') {
    const number = String(url.searchParams.get('partNumber')).padStart(5, '0')
    objects.set(beginning + number, { bytes: body, type: '', at: new Date() })
    return response.writeHead(200, { etag: tagOf(body) }).end()
  }
  forget()
  if (method === 'DELETE') return response.writeHead(204).end()
  const tags = [...body.toString().matchAll(/<ETag>(?:&quot;|")?([0-9a-f]{32})/g)].map(([, tag]) => `"${tag}"`)
  const bytes = parts.slice(1).map(([, part]) => part.bytes)
  if (tags.join() !== bytes.map(tagOf).join()) return fail(response, 400, 'InvalidPart')
  objects.set(name, { bytes: Buffer.concat(bytes), type: begun[1].type, at: new Date() })
  return xml(response, 200, `<CompleteMultipartUploadResult><Key>${name}</Key></CompleteMultipartUploadResult>`)
}

const copy = (
  headers: IncomingMessage['headers'],
  name: string,
  response: ServerResponse,
  objects: Map<string, Kept>,
) => {
  const from = objects.get(decodeURIComponent(String(headers['x-amz-copy-source']).replace(/^\//, '')))
  if (!from) return fail(response, 404, 'NoSuchKey')
  const wanted = headers['x-amz-copy-source-if-match']
  if (wanted && wanted !== tagOf(from.bytes)) return fail(response, 412, 'PreconditionFailed')
  objects.set(name, { ...from, at: new Date() })
  return xml(response, 200, `<CopyObjectResult><ETag>${tagOf(from.bytes)}</ETag></CopyObjectResult>`)
}

const list = (url: URL, bucket: string, response: ServerResponse, objects: Map<string, Kept>) => {
  const root = `${bucket.replace(/\/$/, '')}/`
  const prefix = url.searchParams.get('prefix') ?? ''
  const most = Math.min(Number(url.searchParams.get('max-keys') ?? 3), 3)
  const after = url.searchParams.get('continuation-token') ?? ''
  const keys = [...objects.keys()]
    .map((name) => name.slice(root.length))
    .filter((key) => key.startsWith(prefix) && key > after)
    .sort()
  const shown = keys.slice(0, most)
  const contents = shown.map((key) => {
    const kept = objects.get(root + key)
    return `<Contents><Key>${key}</Key><LastModified>${kept?.at.toISOString()}</LastModified><Size>${kept?.bytes.length}</Size></Contents>`
  })
  const more = keys.length > shown.length
  return xml(
    response,
    200,
    `<ListBucketResult><IsTruncated>${more}</IsTruncated>${more ? `<NextContinuationToken>${shown.at(-1)}</NextContinuationToken>` : ''}${contents.join('')}</ListBucketResult>`,
  )
}

const send = (request: IncomingMessage, url: URL, { bytes, type, at }: Kept, response: ServerResponse) => {
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? []
  const start = first === undefined ? 0 : Number(first)
  const end = last ? Number(last) : bytes.length - 1
  const part = bytes.subarray(start, end + 1)
  const over = (name: string) => url.searchParams.get(`response-${name}`)
  response.writeHead(first === undefined ? 200 : 206, {
    'content-type': over('content-type') ?? type,
    'content-length': part.length,
    etag: tagOf(bytes),
    'last-modified': at.toUTCString(),
    ...(over('content-disposition') ? { 'content-disposition': over('content-disposition') ?? '' } : {}),
    ...(over('cache-control') ? { 'cache-control': over('cache-control') ?? '' } : {}),
    ...(first === undefined ? {} : { 'content-range': `bytes ${start}-${end}/${bytes.length}` }),
  })
  return response.end(request.method === 'HEAD' ? undefined : part)
}
