import { createHash } from 'node:crypto'
import { BadMap, type OpenMap, openMap, tracer } from '#server/diagnostics/source_map.ts'
import type { Reply, Request, Trace } from '#server/diagnostics/source_map_work.ts'
import { createLru } from '#server/lru.ts'

/**
 * A process that reads source maps, one question after the other, for server/diagnostics/source_maps.ts. It has no secrets in its environment, and may die at
 * any moment: by its own limit of memory, or by its parent's limit of time. A program: nothing imports it.
 */
const mostMemory = 1_500_000_000
/** Maps that were read stay, as far as they fit. */
const kept = createLru<OpenMap>(150_000_000, { bytesOf: ({ cost }) => cost })

const trace = ({ places, maps }: Trace): Reply => {
  const lacking = new Set<string>()
  const tracers = new Map<string, ReturnType<typeof tracer>>()
  for (const { map } of places) {
    if (tracers.has(map) || lacking.has(map)) continue
    const bytes = maps[map]
    const found = kept.get(map) ?? (bytes ? openMap(bytes) : undefined)
    if (!found) lacking.add(map)
    else {
      kept.set(map, { map: found.map, functions: found.functions, cost: found.cost })
      tracers.set(map, tracer(found))
    }
  }
  if (lacking.size > 0) return { kind: 'lacking', maps: [...lacking] }
  return { kind: 'traced', sources: places.map((place) => tracers.get(place.map)?.(place) ?? null) }
}

const answer = (request: Request): Reply => {
  try {
    if (request.kind === 'trace') return trace(request)
    const { text } = openMap(request.bytes)
    return { kind: 'checked', size: text.length, sha256: createHash('sha256').update(text).digest('hex') }
  } catch (error) {
    return { kind: 'refused', reason: error instanceof BadMap ? error.message : 'must be a source map' }
  }
}

setInterval(() => {
  if (process.memoryUsage.rss() > mostMemory) process.kill(process.pid, 'SIGKILL')
}, 50).unref()
// its parent has gone: nobody waits for an answer
process.on('disconnect', () => process.exit())
process.on('message', (request: Request) => process.send?.(answer(request)))
