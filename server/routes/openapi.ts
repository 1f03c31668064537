import { z } from 'zod'
import { anyone } from '#server/http/callers.ts'
import { describe } from '#server/http/document/served.ts'
import { area, group, route } from '#server/http/route.ts'
import { NotModified } from '#server/http/schemas.ts'

const summary = 'This OpenAPI document'
const declaration = {
  description: 'Compressed for a client that accepts gzip. 304 when `If-None-Match` matches the current ETag.',
  headers: { 'If-None-Match': z.string().optional() },
  handle: describe,
  replies: { 200: z.looseObject({ openapi: z.string() }), 304: NotModified },
  failure: null,
}

/** The OpenAPI document, under both of its paths. */
export const openapi = area({
  stem: 'openapi',
  title: 'Description',
  part: 'Platform',
  about: 'This document.',
  codes: 'by area',
  unversioned: true,
  routes: group('', { ...anyone, refusals: {} }, [
    route('GET /v1/openapi.json', summary, { ...declaration, operationId: 'getOpenApi' }),
    route('GET /openapi.json', summary, { ...declaration, operationId: 'getUnversionedOpenApi' }),
  ]),
})
