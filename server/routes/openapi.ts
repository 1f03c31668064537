import { z } from 'zod'
import { anyone } from '#server/http/callers.ts'
import { openApi } from '#server/http/openapi.ts'
import { area, type HandlerContext, route } from '#server/http/route.ts'

const describe = async ({ services }: HandlerContext) => ({
  status: 200,
  body: JSON.stringify(openApi(services.areas, services.publicUrl)),
  headers: { 'cache-control': 'public, max-age=60', 'access-control-allow-origin': '*' },
})

const declaration = {
  caller: { ...anyone, refusals: {} },
  summary: 'This description',
  handle: describe,
  replies: { 200: z.looseObject({ openapi: z.literal('3.1.0') }) },
}

/** The machine-readable description, under both of its paths. */
export const openapi = area({
  stem: 'openapi',
  title: 'Description',
  source: 'contract',
  unversioned: true,
  routes: [route('GET /v1/openapi.json', declaration), route('GET /openapi.json', declaration)],
})
