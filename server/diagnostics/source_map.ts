import { gunzipSync } from 'node:zlib'
import { AnyMap, decodedMappings, type TraceMap, traceSegment } from '@jridgewell/trace-mapping'
import { type CodeLine, mostMapBytes, type Place, type Source } from '#server/diagnostics/source_map_work.ts'

/** What makes a map expensive is counted before anything is decoded. */
const mostSegments = 3_000_000
const mostSources = 50_000
const mostSections = 1000
const mostOffset = 1_000_000

export class BadMap extends Error {}

type Raw = {
  readonly version?: unknown
  readonly mappings?: unknown
  readonly sources?: unknown
  readonly sections?: unknown
  readonly x_facebook_sources?: unknown
}
/** A map that has been read. `cost` is about what it takes in memory. */
export type OpenMap = { readonly map: TraceMap; readonly functions: readonly unknown[]; readonly cost: number }

const separators = (mappings: string): number => {
  let count = 0
  for (let at = 0; at < mappings.length; at += 1) {
    const code = mappings.charCodeAt(at)
    if (code === 44 || code === 59) count += 1
  }
  return count
}

const parsed = (bytes: Uint8Array): { text: Buffer; raw: Raw } => {
  let text: Buffer
  try {
    text = gunzipSync(bytes, { maxOutputLength: mostMapBytes })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE')
      throw new BadMap(`must have at most ${mostMapBytes} bytes, unpacked`)
    throw new BadMap('must be a source map, as gzip')
  }
  try {
    // some servers put a line before it that no script can load
    const json = text.toString().replace(/^\)\]\}[^\n]{0,20}\n/, '')
    const raw: unknown = JSON.parse(json)
    if (typeof raw === 'object' && raw !== null) return { text, raw }
  } catch {}
  throw new BadMap('must be a source map: JSON of version 3')
}

/** The segments of one map, after its form. */
const segmentsOf = ({ version, mappings, sources }: Raw): number => {
  if (version !== 3 || typeof mappings !== 'string' || !Array.isArray(sources))
    throw new BadMap('must be a source map: JSON of version 3')
  if (/[^A-Za-z0-9+/,;]/.test(mappings)) throw new BadMap('must have mappings of base64 VLQ')
  if (sources.length > mostSources) throw new BadMap(`must have at most ${mostSources} sources`)
  return separators(mappings) + 1
}

const checkedSections = (sections: readonly unknown[]): readonly Raw[] => {
  if (sections.length > mostSections) throw new BadMap(`must have at most ${mostSections} sections`)
  return sections.map((section) => {
    const { map, offset } = Object(section) as { map?: Raw; offset?: { line?: unknown; column?: unknown } }
    for (const number of [offset?.line, offset?.column])
      if (!Number.isInteger(number) || Number(number) < 0 || Number(number) > mostOffset)
        throw new BadMap('must have sections with an offset')
    return Object(map) as Raw
  })
}

/** Reads a map of gzip. Throws a BadMap for what is none, and for what would take too much. */
export const openMap = (bytes: Uint8Array): OpenMap & { readonly text: Buffer } => {
  const { text, raw } = parsed(bytes)
  const parts = Array.isArray(raw.sections) ? checkedSections(raw.sections) : [raw]
  const segments = parts.map(segmentsOf).reduce((sum, one) => sum + one, 0)
  if (segments > mostSegments) throw new BadMap(`must have at most ${mostSegments} mappings`)
  try {
    const map = new AnyMap(raw as never)
    if (!decodedMappings(map).some((line) => line.some((segment) => segment.length > 1)))
      throw new BadMap('must map something')
    const functions = Array.isArray(raw.x_facebook_sources) ? raw.x_facebook_sources : []
    return { map, functions, cost: text.length * 2 + segments * 100, text }
  } catch (error) {
    throw error instanceof BadMap ? error : new BadMap('must be a source map: its mappings cannot be read')
  }
}

const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** The numbers of a base64 VLQ text. */
const numbersOf = (text: string): readonly number[] => {
  const numbers: number[] = []
  let [value, shift] = [0, 0]
  for (const char of text) {
    const digit = digits.indexOf(char)
    if (digit < 0 || shift > 30) return numbers
    value += (digit & 31) * 2 ** shift
    if (digit & 32) shift += 5
    else {
      numbers.push(value % 2 === 1 ? -Math.floor(value / 2) : value / 2)
      value = 0
      shift = 0
    }
  }
  return numbers
}

/** Bundles of React Native say which function is around a place of a source: `[column, name, line?]` for each beginning, relative to the one before. */
const enclosingOf = (functions: readonly unknown[], source: number, line: number, column: number): string | null => {
  const entry = functions[source]
  const { names, mappings } = Object(Array.isArray(entry) ? entry[0] : null) as { names?: unknown; mappings?: unknown }
  if (!Array.isArray(names) || typeof mappings !== 'string') return null
  let [atLine, name, found] = [1, 0, null as string | null]
  for (const group of mappings.split(';')) {
    let atColumn = 0
    for (const part of group.split(',')) {
      const [byColumn = 0, byName = 0, byLine = 0] = numbersOf(part)
      atLine += byLine
      name += byName
      atColumn += byColumn
      if (atLine > line || (atLine === line && atColumn > column)) return found
      found = typeof names[name] === 'string' ? names[name] : null
    }
  }
  return found
}

const around = 5
const mostWidth = 240

/** The part of a line that has the place: sources that were packed before have lines of a megabyte. */
const windowOf = (text: string, column: number): string => {
  const from = text.length <= mostWidth ? 0 : Math.max(0, Math.min(column - mostWidth / 2, text.length - mostWidth))
  return text.slice(from, from + mostWidth).trimEnd()
}

const codeOf = (lines: readonly string[], line: number, column: number): readonly CodeLine[] => {
  const first = Math.max(0, line - around)
  return line < lines.length
    ? lines
        .slice(first, line + around + 1)
        .map((text, index) => ({ line: first + index + 1, text: windowOf(text, column) }))
    : []
}

/** `webpack://app/./src/a.ts` and `../../src/a.ts` are `src/a.ts`. */
const shownFile = (source: unknown): string =>
  String(source ?? '')
    .slice(0, 2000)
    .replace(/^[a-z][a-z0-9+.-]{0,20}:\/\/[^/]*\//i, '')
    .replace(/^(?:\.{0,2}\/)+/, '')
    .slice(-300)

const nameOf = (name: unknown): string | null => (typeof name === 'string' && name !== '' ? name.slice(0, 200) : null)

/** Answers places of one map; the lines of a source are cut once. */
export const tracer = ({ map, functions }: OpenMap): ((place: Place) => Source | null) => {
  const cut = new Map<number, readonly string[]>()
  const linesOf = (source: number): readonly string[] => {
    const known = cut.get(source)
    if (known) return known
    const content = map.sourcesContent?.[source]
    const lines = typeof content === 'string' ? content.split(/\r?\n/) : []
    cut.set(source, lines)
    return lines
  }
  return ({ line, column }) => {
    const segment = traceSegment(map, line - 1, column)
    if (!segment || segment.length === 1) return null
    const [, source, sourceLine, sourceColumn, name] = segment
    if (!(source in map.sources) || sourceLine < 0 || sourceColumn < 0) return null
    return {
      file: shownFile(map.resolvedSources[source]),
      line: sourceLine + 1,
      column: sourceColumn + 1,
      code: codeOf(linesOf(source), sourceLine, sourceColumn),
      enclosing: nameOf(enclosingOf(functions, source, sourceLine + 1, sourceColumn)),
      name: name === undefined ? null : nameOf(map.names[name]),
    }
  }
}
