// npm run docs: writes what the documentation takes from the code. With --check it writes nothing, and fails when something is stale.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { environment } from '#server/config.ts'
import { loadAreas } from '#server/http/areas.ts'
import { declaredCodes, fullPath, openApi } from '#server/http/openapi.ts'
import { type Area, type Caller, type Route, withoutOwn } from '#server/http/route.ts'
import { restArea } from '#server/rest/caller.ts'
import { root } from '#server/root.ts'
import { instruments, prometheusName } from '#server/telemetry/instruments.ts'
import { meaningOf, meaningProblems } from './docs/codes.ts'
import { withCalls } from './docs/supabase.ts'
import { table } from './docs/table.ts'
import { wordProblems } from './docs/words.ts'
import { lineProblems } from './lines.ts'
import { registerProblems } from './registers.ts'
import { releasedDocument, sdkFiles } from './sdk/generate.ts'

const credentials: Readonly<Record<string, string>> = {
  Developer: "developer's token",
  ApiKey: 'API key',
  'ApiKey Session': "API key and user's session",
  'ApiKey OnBehalfOf': 'server key and `X-On-Behalf-Of`',
}

const callerText = (caller: Caller): string => {
  if (caller.security.length === 0) return 'anyone'
  return caller.security
    .map((needed) => credentials[Object.keys(needed).join(' ')] ?? Object.keys(needed).join(' and '))
    .join(', or ')
}

const madeHere = 'Made from the route declarations by `npm run docs`.'

const apiPage = (areas: readonly Area[]): string => {
  const parts = areas.map((area) => {
    const rows = area.routes.map((route) => [
      `\`${route.method} ${fullPath(area, route)}\``,
      callerText(route.caller),
      route.summary,
      Object.keys(route.replies).join(', '),
    ])
    return `## ${area.title}\n\n${table(['route', 'who', 'what', 'answers'], rows)}\n`
  })
  return `# Routes

${madeHere} A running server describes them in full at
\`/docs\`, and for programs at \`/openapi.json\`. What error codes mean stands in [errors.md](errors.md).

- Credentials: a developer's token goes into \`Authorization: Bearer\`, an API key into \`X-Api-Key\`, a user's session token into
  \`Authorization: Bearer\` beside the API key.
- Success is \`{"data": ...}\`, a list of pages has \`total\`, \`offset\` and \`limit\` or a \`pagination\` beside it; a refusal is
  \`{"error": {"code", "message", "details"?}}\`. Every answer carries \`X-Request-Id\`.

${parts.join('\n')}`
}

type Entry = { readonly area: Area; readonly route: Route }

const entriesOf = (areas: readonly Area[]): Entry[] =>
  areas.flatMap((area) => area.routes.map((route) => ({ area, route })))

/** Where a code is answered, as short as it can be said; `/docs` says it for each route. */
const placesOf = (areas: readonly Area[], found: readonly Entry[]): string => {
  if (found.length <= 2) return found.map(nameOf).join(', ')
  const titles = new Set(areas.filter((area) => found.some((entry) => entry.area === area)).map(({ title }) => title))
  return titles.size <= 5 ? [...titles].join(', ') : `${found.length} routes`
}

const nameOf = ({ area, route }: Entry) => `\`${route.method} ${fullPath(area, route)}\``

const errorsPage = (areas: readonly Area[]): string => {
  const statuses = new Map<number, Map<string, Entry[]>>()
  for (const entry of entriesOf(areas)) {
    for (const [status, codes] of declaredCodes(entry.area, entry.route)) {
      const byCode = statuses.get(status) ?? new Map<string, Entry[]>()
      statuses.set(status, byCode)
      for (const code of codes) byCode.set(code, [...(byCode.get(code) ?? []), entry])
    }
  }
  const parts = [...statuses]
    .sort(([a], [b]) => a - b)
    .map(([status, byCode]) => {
      const rows = [...byCode]
        .sort(([a], [b]) => a.localeCompare(b))
        .map(([code, found]) => [`\`${code}\``, ...meaningOf(status, code), placesOf(areas, found)])
      return `## ${status}\n\n${table(['code', 'meaning', 'what to do', 'answered by'], rows)}\n`
    })
  return `# Errors

${madeHere} Tests fail on a code that a route does not declare for its
status, and on a declared one that no test has seen. The meanings are in \`scripts/docs/codes.ts\`.

A refusal is \`{"error": {"code", "message", "details"?}}\`: decide by \`code\`, show \`message\` to developers. \`429\` and \`503\` carry
\`Retry-After\` in seconds. A \`500\` says nothing of the inside; its \`X-Request-Id\` stands in the server's log. Beside these, a
path that does not exist answers 404 \`NOT_FOUND\`, a known path under another method 405 \`METHOD_NOT_ALLOWED\` with
\`Allow\`. What HTTP itself refuses has the same form: 400 \`INVALID_INPUT\` (no Host in HTTP/1.1, two of them, broken framing), 405 \`METHOD_NOT_ALLOWED\`
for \`CONNECT\`, 408 \`REQUEST_TIMEOUT\`, 417 \`EXPECTATION_FAILED\`, and 431 \`HEADERS_TOO_LARGE\` for headers of more than 16 KB.

What each route may answer stands in \`/docs\` and \`/openapi.json\` of a running server.

${parts.join('\n')}`
}

const defaultOf = (name: string, documented: unknown): string => {
  if (documented !== undefined) return `\`${documented}\``
  const field = (environment.shape as Readonly<Record<string, z.ZodType>>)[name]
  const { data } = field?.safeParse(undefined) ?? {}
  return data === undefined || Array.isArray(data) ? '' : `\`${data}\``
}

const environmentTable = (): string => {
  const { properties = {} } = z.toJSONSchema(environment, { io: 'input', unrepresentable: 'any' })
  const rows = Object.entries(properties).map(([name, property]) => {
    const {
      description = '',
      default: usual,
      enum: values,
    } = property as { description?: string; default?: unknown; enum?: string[] }
    const choice = values && values.length > 1 ? ` One of ${values.map((value) => `\`${value}\``).join(', ')}.` : ''
    return [`\`${name}\``, defaultOf(name, usual), description + choice]
  })
  return table(['variable', 'default', 'meaning'], rows)
}

const metricsTable = (): string => {
  const rows = Object.values(instruments).map((metric) => [
    `\`${metric.name}\``,
    `\`${prometheusName(metric)}\``,
    metric.kind,
    metric.unit.replace(/[{}]/g, ''),
    metric.attributes.map((name) => `\`${name}\``).join(', '),
    metric.description,
  ])
  return table(['metric', 'for Prometheus', 'kind', 'unit', 'attributes', 'meaning'], rows)
}

/** A page whose part between two marks is made here. */
const withPart = (file: string, page: string, part: string, made: string): string => {
  const begin = `<!-- ${part}: made by npm run docs -->`
  const end = `<!-- end of ${part} -->`
  const [before, rest = ''] = page.split(begin)
  const after = rest.split(end)[1]
  if (before === undefined || after === undefined)
    throw new Error(`${file} has lost its marks "${begin}" and "${end}".`)
  return `${before}${begin}\n${made}\n${end}${after}`
}

/** Packages that docs/dependencies.md does not argue for, and ones that it still does. */
const dependencyProblems = async (): Promise<string[]> => {
  const manifest = JSON.parse(await read('package.json')) as Readonly<Record<string, Readonly<Record<string, string>>>>
  const kinds = ['dependencies', 'optionalDependencies', 'devDependencies']
  const packages = kinds.flatMap((kind) => Object.keys(manifest[kind] ?? {}))
  const firstCells = (await read('docs/dependencies.md')).matchAll(/^\| (`[^|]*`) \|/gm)
  const named = [...firstCells].flatMap(([, names = '']) =>
    [...names.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  )
  const covers = (name: string, installed: string) =>
    name.endsWith('*') ? installed.startsWith(name.slice(0, -1)) : name === installed
  return [
    ...packages.filter((installed) => !named.some((name) => covers(name, installed))).map((name) => `lacks ${name}`),
    ...named
      .filter((name) => !packages.some((installed) => covers(name, installed)))
      .map((name) => `still has ${name}`),
  ]
}

/** Every status and code that a route declares. */
const answeredCodes = (areas: readonly Area[]): [status: number, code: string][] =>
  entriesOf(areas).flatMap(({ area, route }) =>
    [...declaredCodes(area, route)].flatMap(([status, codes]) =>
      [...codes].map((code): [number, string] => [status, code]),
    ),
  )

/** Codes that a route names although its function, its caller or its schemas say them already. */
const repeatedRefusals = (areas: readonly Area[]): string[] =>
  entriesOf(areas).flatMap(({ area, route }) => {
    if (route.definition) return []
    const others = declaredCodes(area, withoutOwn(route))
    return Object.entries(route.own).flatMap(([status, codes]) =>
      codes
        .filter((code) => others.get(Number(status))?.has(code))
        .map((code) => `${nameOf({ area, route })} need not name ${status} ${code}`),
    )
  })

const read = (file: string) => readFile(join(root, file), 'utf8').catch(() => '')

/** Answers whether the file was another. */
const write = async (file: string, text: string): Promise<boolean> => {
  if ((await read(file)) === text) return false
  await writeFile(join(root, file), text)
  return true
}

const main = async (): Promise<void> => {
  const isCheck = process.argv.includes('--check')
  // these need a database: the test suite checks them. The routes read one of them
  const made = isCheck ? [] : await (await import('./docs/database.ts')).freshDatabasePages()
  const stale: string[] = []
  for (const [file, text] of made) if (await write(file, text)) stale.push(file)
  const areas = (await loadAreas()).sort((a, b) => a.title.localeCompare(b.title))
  const pages: [string, string][] = [
    ['docs/api.md', apiPage(areas)],
    ['docs/errors.md', errorsPage([...areas, restArea])],
    [
      'docs/configuration.md',
      withPart('docs/configuration.md', await read('docs/configuration.md'), 'environment', environmentTable()),
    ],
    ['docs/metrics.md', withPart('docs/metrics.md', await read('docs/metrics.md'), 'metrics', metricsTable())],
    ['docs/supabase-js.md', withCalls(await read('docs/supabase-js.md'))],
    ...sdkFiles(await releasedDocument()),
  ]
  for (const [file, text] of pages)
    if (isCheck ? (await read(file)) !== text : await write(file, text)) stale.push(file)
  if (!isCheck) {
    process.stdout.write(stale.length > 0 ? `Wrote ${stale.join(', ')}.\n` : 'Everything is current.\n')
    return
  }
  for (const problem of await dependencyProblems()) {
    process.stderr.write(`docs/dependencies.md ${problem}.\n`)
    process.exitCode = 1
  }
  const problems = [
    ...repeatedRefusals(areas),
    ...meaningProblems(answeredCodes([...areas, restArea])),
    ...(await registerProblems()),
    ...(await lineProblems(root)),
    ...wordProblems(areas, await openApi(areas, 'https://api.trellis.test')),
  ]
  for (const problem of problems) {
    process.stderr.write(`${problem}.\n`)
    process.exitCode = 1
  }
  if (stale.length > 0) {
    process.stderr.write(`${stale.join(', ')}: not what the code says any more. Run npm run docs.\n`)
    process.exitCode = 1
  }
}

try {
  await main()
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`)
  process.exitCode = 1
}
