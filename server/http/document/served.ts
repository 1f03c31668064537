/** The OpenAPI document as it is served: made once, compressed, with its tag. */
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { isKnown } from '#server/http/conditional.ts'
import { encodingOf } from '#server/http/encodings.ts'
import { openApi } from '#server/http/openapi.ts'
import type { HandlerContext } from '#server/http/route.ts'
import type { Services } from '#server/services.ts'

type Document = { readonly bytes: Buffer; readonly compressed: Buffer; readonly etag: string }

const documents = new WeakMap<object, { readonly publicUrl: string; readonly document: Promise<Document> }>()

const makeDocument = async ({ areas, publicUrl }: Pick<Services, 'areas' | 'publicUrl'>): Promise<Document> => {
  const bytes = Buffer.from(JSON.stringify(await openApi(areas, publicUrl)))
  return {
    bytes,
    compressed: await promisify(gzip)(bytes, { level: 9 }),
    etag: createHash('sha256').update(bytes).digest('base64url'),
  }
}

/** The bytes of the document: routes do not change while a server runs; its address changes once, when it listens. */
const documentOf = (services: Pick<Services, 'areas' | 'publicUrl'>): Promise<Document> => {
  const { publicUrl } = services
  const known = documents.get(services)
  if (known?.publicUrl === publicUrl) return known.document
  const document = makeDocument(services)
  documents.set(services, { publicUrl, document })
  return document
}

export const describe = async ({ services, request }: HandlerContext) => {
  const { bytes, compressed, etag } = await documentOf(services)
  const isCompressed = encodingOf(request, ['gzip']) !== undefined
  const etags = [`"${etag}"`, `"${etag}-gzip"`]
  const header = request.headers['if-none-match']
  const isNotModified = etags.some((one) => isKnown(header, one))
  return {
    status: isNotModified ? 304 : 200,
    body: isNotModified ? '' : isCompressed ? compressed : bytes,
    headers: {
      etag: etags[isCompressed ? 1 : 0] ?? '',
      'cache-control': 'public, max-age=60',
      'access-control-allow-origin': '*',
      vary: 'accept-encoding',
      ...(isCompressed && !isNotModified ? { 'content-encoding': 'gzip' } : {}),
    },
  }
}
