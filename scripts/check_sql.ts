// npm run check:sql: loads the SQL of this program into an empty Postgres of its own, and says what requests would find wrong with it.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { escapeRegExp, type Finding, sourcesOf } from '#fleet/checks/finding.ts'
import { checkDatabase, lineOf } from '#fleet/checks/program.ts'
import { startEmbeddedPostgres } from '#fleet/embedded/server.ts'
import { startPostgres } from '#fleet/postgres.ts'
import { prepare } from '#fleet/prepare.ts'
import { readConfig } from '#server/config.ts'
import { connectAdmin, maintenanceDatabase } from '#server/database/cluster.ts'
import { controlName, templateName } from '#server/database/names.ts'
import { loadAreas } from '#server/http/areas.ts'
import { createLog } from '#server/log.ts'
import { root } from '#server/root.ts'
import { interfaceFile } from './docs/interface.ts'
import { checkRefusals } from './docs/refusal_codes.ts'

const print = (line: string) => process.stdout.write(`${line}\n`)

/** Which functions and entities another text of server/interface.json describes in another way. */
const stale = (is: string, mustBe: string): Finding[] => {
  if (is === mustBe) return []
  const [has, says] = [partsOf(is), partsOf(mustBe)]
  const different = [...new Set([...has.keys(), ...says.keys()])].filter((name) => has.get(name) !== says.get(name))
  return [
    {
      place: 'server/interface.json',
      problem: `the SQL says something else of what it refuses, answers and takes: ${different.length > 0 ? different.sort().join(', ') : 'its form is another'}.`,
      remedy: 'Run npm run docs.',
      severity: 'error',
    },
  ]
}

/** "tenant refusals of streak_get" with what the file says of it. */
const partsOf = (text: string): ReadonlyMap<string, string> => {
  const parsed = JSON.parse(text || '{}') as Record<string, Record<string, Record<string, unknown>>>
  return new Map(
    Object.entries(parsed).flatMap(([kind, parts]) =>
      Object.entries(parts).flatMap(([part, entries]) =>
        Object.entries(entries).map(([name, said]) => [`${kind} ${part} of ${name}`, JSON.stringify(said)] as const),
      ),
    ),
  )
}

/** `base` is the repository, or a copy of its SQL folders. */
const check = async (folder: string, base: string | undefined): Promise<number> => {
  const began = performance.now()
  const postgres = await startEmbeddedPostgres({
    dataDir: folder,
    superuserPassword: 'check',
    sync: false,
    log: () => undefined,
  })
  try {
    const config = readConfig({
      DATABASE_URL: postgres.url,
      SECRETS_KEY: Buffer.alloc(32).toString('base64'),
      DATA_DIR: folder,
      LOG_LEVEL: 'warn',
    })
    const foundation = await startPostgres(config, createLog(config))
    const areas = await loadAreas()
    const { socketDirectory } = postgres
    const { cluster } = await prepare(
      { ...foundation, postgres: { ...foundation.postgres, socketDirectory } },
      { ...(base ? { sqlRoot: base } : {}), isUnchecked: true },
    )
    const admin = await connectAdmin(cluster, maintenanceDatabase(cluster), false)
    await admin.query(`alter database "${templateName(config.DATABASE_PREFIX)}" allow_connections true`)
    await admin.end()
    const control = await connectAdmin(cluster, controlName(config.DATABASE_PREFIX))
    const tenant = await connectAdmin(cluster, templateName(config.DATABASE_PREFIX))
    const findings: Finding[] = []
    try {
      const sources = sourcesOf(base ?? root)
      for (const [kind, client] of Object.entries({ control, tenant }) as ['control' | 'tenant', pg.Client][]) {
        findings.push(...(await checkDatabase(client, kind, areas, base ? { base } : {})))
        const placeOf = (name: string) =>
          sources.find(new RegExp(`function ${escapeRegExp(name)}\\s*\\(`), 'functions/')
        findings.push(...(await checkRefusals(client, placeOf)))
      }
      const file = await readFile(join(root, 'server/interface.json'), 'utf8')
      findings.push(...stale(file, await interfaceFile(control, tenant)))
    } finally {
      await Promise.all([control.end(), tenant.end()])
    }
    for (const finding of findings) print(lineOf(finding))
    print(`check:sql: ${findings.length} found in ${((performance.now() - began) / 1000).toFixed(1)} s`)
    return findings.length > 0 ? 1 : 0
  } finally {
    await postgres.stop()
  }
}

const folder = await mkdtemp(join(tmpdir(), 'trellis-check-'))
try {
  process.exitCode = await check(folder, process.argv[2])
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`)
  process.exitCode = 1
} finally {
  await rm(folder, { recursive: true, force: true })
}
