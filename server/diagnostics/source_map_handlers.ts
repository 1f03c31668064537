/** Source maps as the API takes them, and reports with the frames that they explain. */

import { Readable } from 'node:stream'
import { dataOf } from '#server/database/database.ts'
import { type Frame, framesOf, namesOfBundle } from '#server/diagnostics/frames.ts'
import { mostPackedBytes, type Place, type Source } from '#server/diagnostics/source_map_work.ts'
import { NoAnswer } from '#server/diagnostics/source_maps.ts'
import { refusal } from '#server/errors.ts'
import { projectIdOf } from '#server/http/project.ts'
import type { Answer, HandlerContext } from '#server/http/route.ts'
import { isFree } from '#server/media/assets.ts'

const mostTraced = 50
const mostMaps = 5

const invalid = (reason: string) => refusal(400, 'VALIDATION_ERROR', `body: ${reason}`, { field: 'body', reason })

const tooLarge = () => refusal(413, 'PAYLOAD_TOO_LARGE', 'The source map has more than 16 MB as gzip.')

/** The bytes of an upload. What is too long is read to its end and discarded: a client that still sends does not read the refusal. */
const bytesOf = async ({ request, query, call }: HandlerContext): Promise<Buffer> => {
  const file = request.body
  if (!(file instanceof Readable)) throw refusal(415, 'UNSUPPORTED_MEDIA_TYPE', 'Send the map as application/gzip.')
  const chunks: Buffer[] = []
  let size = 0
  try {
    if (Number(request.headers['content-length']) > mostPackedBytes) throw tooLarge()
    // before anything is read
    await call('source_map_begin', query)
    for await (const chunk of file.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > mostPackedBytes) throw tooLarge()
      chunks.push(chunk)
    }
  } catch (error) {
    file.resume()
    throw error
  }
  return Buffer.concat(chunks)
}

/** Stores a map that the process has read: what it could not read later is refused now. */
export const putSourceMap = async (context: HandlerContext): Promise<Answer> => {
  const { services, query, call } = context
  const packed = await bytesOf(context)
  const checked = await services.sourceMaps.check(projectIdOf(context), packed).catch((error: unknown) => {
    if (!(error instanceof NoAnswer)) throw error
    if (!error.isBusy) throw invalid('takes too much time or memory to read')
    throw refusal(503, 'SERVICE_UNAVAILABLE', 'Many source maps are being read.', null, { 'Retry-After': '5' })
  })
  if (checked.kind === 'refused') throw invalid(checked.reason)
  const { size, sha256 } = checked
  const content = packed.toString('base64')
  return call('source_map_put', { ...query, content, sha256, size, is_free: isFree(context) })
}

type Known = { readonly id: string; readonly bundle: string; readonly sha256: string }

/** The maps of a release for these frames, by the file of the frame. */
const mapsOf = async ({ call }: HandlerContext, release: string | null, frames: readonly Frame[]) => {
  const files = [...new Set(frames.flatMap(({ file }) => (file === null ? [] : [file])))]
  const names = new Map(files.map((file) => [file, namesOfBundle(file)]))
  if (release === null || files.length === 0) return new Map<string, Known>()
  const known = dataOf<readonly Known[]>(
    await call('source_maps_of', { release, bundles: [...new Set([...names.values()].flat())] }),
  )
  const byName = new Map(known.map((map) => [map.bundle, map]))
  return new Map(
    files.flatMap((file) => {
      const name = names.get(file)?.find((one) => byName.has(one))
      const map = name === undefined ? undefined : byName.get(name)
      return map ? [[file, map] as const] : []
    }),
  )
}

/** The bytes of maps that the process wants. One that was replaced meanwhile is left out. */
const contentsOf = async ({ call }: HandlerContext, maps: readonly Known[]) => {
  const contents: Record<string, Uint8Array> = {}
  for (const { id, sha256 } of maps) {
    const { content } = dataOf<{ content: string | null }>(
      await call('source_map_content', { source_map_id: id, sha256 }),
    )
    if (content !== null) contents[sha256] = Buffer.from(content, 'base64')
  }
  return contents
}

type Traced = { readonly sources: ReadonlyMap<Frame, Source>; readonly failed: ReadonlySet<string> }

const traced = async (
  context: HandlerContext,
  frames: readonly Frame[],
  maps: ReadonlyMap<string, Known>,
): Promise<Traced> => {
  const wanted = [...new Map([...maps.values()].map((map) => [map.sha256, map])).values()].slice(0, mostMaps)
  const isWanted = new Set(wanted.map(({ sha256 }) => sha256))
  const asked = frames
    .flatMap((frame) => {
      const map = frame.file === null ? undefined : maps.get(frame.file)?.sha256
      if (map === undefined || !isWanted.has(map) || frame.line === null || frame.column === null) return []
      const place: Place = { map, line: frame.line, column: frame.column - 1 }
      // a line 0 is no line
      return place.line > 0 && place.column >= 0 ? [{ frame, place }] : []
    })
    .slice(0, mostTraced)
  if (asked.length === 0) return { sources: new Map(), failed: new Set() }
  const { sourceMaps } = context.services
  const projectId = projectIdOf(context)
  const places = asked.map(({ place }) => place)
  try {
    let reply = await sourceMaps.trace(projectId, places, {})
    if (reply.kind === 'lacking') {
      const { maps: lacking } = reply
      const contents = await contentsOf(
        context,
        wanted.filter(({ sha256 }) => lacking.includes(sha256)),
      )
      reply = await sourceMaps.trace(projectId, places, contents)
    }
    if (reply.kind !== 'traced') return { sources: new Map(), failed: isWanted }
    const { sources } = reply
    const found = asked.flatMap(({ frame }, index) => {
      const source = sources[index]
      return source ? [[frame, source] as const] : []
    })
    return { sources: new Map(found), failed: new Set() }
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error
    context.services.log.warn({ project: projectId, error: error.message }, 'frames are shown without their sources')
    return { sources: new Map(), failed: isWanted }
  }
}

/** The caller names the function that it calls, where the bundle has a shorter name: of a frame the next one knows it. */
const shownFrame = (frame: Frame, source: Source | undefined, caller: Source | undefined) => {
  if (!source) return { ...frame, source: null }
  const { file, line, column, code, enclosing } = source
  const name = enclosing ?? (frame.function === null ? null : (caller?.name ?? frame.function))
  return { ...frame, source: { file, line, column, function: name, code } }
}

type Report = { readonly stack: string | null; readonly app_version: string | null }

/** A report, with its frames as the maps of its version explain them. */
export const issueReport = async (context: HandlerContext): Promise<Answer> => {
  const { issueId, reportId } = context.params
  const reply = await context.call('diagnostics_issue_report', { issue_id: issueId, report_id: reportId })
  const report = dataOf<Report>(reply)
  const frames = framesOf(report.stack ?? '')
  const maps = await mapsOf(context, report.app_version, frames)
  const { sources, failed } = await traced(context, frames, maps)
  const shown = frames.map((frame, index) => {
    const caller = frames[index + 1]
    return shownFrame(frame, sources.get(frame), caller && sources.get(caller))
  })
  const files = [...new Set(frames.flatMap(({ file }) => (file === null ? [] : [file])))]
  const bundles = files.slice(0, 20).map((file) => {
    const map = maps.get(file)
    return { file, source_map: map === undefined ? 'missing' : failed.has(map.sha256) ? 'failed' : 'used' }
  })
  return { status: 200, body: JSON.stringify({ data: { ...report, frames: shown, bundles } }) }
}
