import { z } from 'zod'
import { Stored } from '#server/diagnostics/schemas.ts'
import { issueReport, putSourceMap } from '#server/diagnostics/source_map_handlers.ts'
import { administrator } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import { Deleted, data, Line, Page, page } from '#server/http/schemas.ts'

const Release = Line(64, 1)
/** A path without white space, so that a line of a stack can name it. */
const Bundle = z
  .string()
  .max(200, 'must have at most 200 characters')
  .regex(/^[^\s\\?#/]+(\/[^\s\\?#/]+)*$/, 'must be the path of a bundle, such as assets/index.js')
const SourceMap = answer('source_map_json')

const Code = z.array(z.strictObject({ line: z.int(), text: z.string() }))
const Frame = z.strictObject({
  raw: z.string(),
  function: z.string().nullable(),
  file: z.string().nullable(),
  line: z.int().nullable(),
  column: z.int().nullable(),
  source: z
    .strictObject({
      file: z.string(),
      line: z.int(),
      column: z.int(),
      function: z.string().nullable(),
      code: Code,
    })
    .nullable(),
})
const Explained = z.strictObject({
  ...Stored.shape,
  frames: z.array(Frame),
  bundles: z.array(z.strictObject({ file: z.string(), source_map: z.enum(['used', 'missing', 'failed']) })),
})

export const sourceMaps = area({
  stem: 'diagnostics',
  title: 'Diagnostics: source maps',
  part: 'Platform',
  about: 'Source maps of the bundles of releases, with which frames of stacks are shown as they were written.',
  routes: [
    ...group('/admin/projects/:projectId/diagnostics', administrator, [
      route('GET /issues/:issueId/reports/:reportId', 'A report, with the frames of its stack', {
        handle: issueReport,
        calls: ['diagnostics_issue_report'],
        operationId: 'getReport',
        description:
          '`frames` are the first 100 lines of the stack that name a place. Those of a bundle that has a source map in the release `app_version` have their `source`, with up to five lines of code around. `bundles` says which maps were used.',
        replies: { 200: data(Explained) },
      }),
      route('PUT /source-maps', 'Upload the source map of a bundle of a release', {
        handle: putSourceMap,
        calls: ['source_map_begin', 'source_map_put'],
        operationId: 'putSourceMap',
        description:
          'The body is the map as gzip: at most 16 MB, and 64 MB unpacked. It takes the place of a former one. `bundle` is the path of the bundle, or the end of it, such as `assets/index.js`. A release has at most 100; of the oldest of more than 20 releases, or 500 MB (50 MB of a free project), the maps are deleted.',
        query: { release: Release, bundle: Bundle },
        uploads: ['application/gzip'],
        replies: { 200: data(SourceMap), 201: data(SourceMap) },
        refusals: { 400: ['VALIDATION_ERROR'] },
      }),
      route('GET /source-maps', 'Source maps, newest upload first', {
        call: 'source_maps',
        operationId: 'listSourceMaps',
        query: { ...Page, release: Release.optional() },
        replies: { 200: page(SourceMap) },
      }),
      route('DELETE /source-maps', 'Delete the source maps of a release', {
        call: 'source_maps_delete',
        operationId: 'deleteSourceMaps',
        query: { release: Release },
        replies: { 200: data(z.strictObject({ deleted: z.int() })) },
      }),
      route('DELETE /source-maps/:sourceMapId', 'Delete a source map', {
        call: 'source_map_delete',
        operationId: 'deleteSourceMap',
        replies: { 200: Deleted },
      }),
    ]),
  ],
})
