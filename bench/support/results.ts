import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'
import { join } from 'node:path'
import { root } from '#server/root.ts'
import { type KeptRatios, type Ratio, regressions, toKeep } from './ratios.ts'

/** What was measured and wanted. `floor` is what keeps it from less, named where the aim is out of reach of what the first design hoped for. */
export type Aim = {
  readonly text: string
  readonly isMet: boolean | null
  readonly floor?: string
  readonly ratios?: readonly Ratio[]
}

/** One line of an aim: what was measured, what was wanted. Null is an aim that could not be measured here. */
export const aimLine = ({ text, isMet, floor }: Aim): string =>
  `- ${isMet === null ? '**not measured**' : isMet ? 'met' : '**missed**'}: ${text}${floor ? `. Floor: ${floor}` : ''}`

const run = (command: string, args: readonly string[]): string | null => {
  try {
    return execFileSync(command, args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return null
  }
}

export const versionOf = async (name: string): Promise<string> =>
  (JSON.parse(await readFile(join(root, 'node_modules', name, 'package.json'), 'utf8')) as { version: string }).version

const commitOf = (): string => {
  const commit = run('git', ['rev-parse', '--short', 'HEAD']) ?? 'unknown'
  const changed = run('git', [
    'status',
    '--porcelain',
    '--',
    'server',
    'fleet',
    'workers',
    'sql',
    'db',
    'functions',
    'policies',
  ])
  return changed ? `${commit} with uncommitted changes` : commit
}

/** What a table of figures means nothing without. */
export const circumstances = async (command: string, versions: Readonly<Record<string, string>>): Promise<string> => {
  const processors = cpus()
  const gigabytes = Math.round(totalmem() / 2 ** 30)
  const named = { Node: process.versions.node, pg: await versionOf('pg'), ...versions }
  return [
    `- machine: ${processors[0]?.model.trim()}, ${processors.length} cores, ${gigabytes} GB; shared with other work during the run`,
    `- versions: ${Object.entries(named)
      .map(([name, version]) => `${name} ${version}`)
      .join(', ')}`,
    `- commit: ${commitOf()}`,
    `- command: \`${command}\`, ${new Date().toISOString().slice(0, 10)}`,
  ].join('\n')
}

const results = join(root, 'bench/RESULTS.md')

const heading = `# Results

Each section is written by its own bench and replaced by its next full run; \`-- --short\` prints and writes nothing.
Contestants take turns in rounds and a figure is the median of its rounds, so that whatever else the machine does meets all
of them alike: read the ratios, the absolute figures only give the order of size.
`

/** Replaces the section of this name in RESULTS.md, or another page, and leaves the others as they are. */
export const writeSection = async (name: string, text: string, file = results): Promise<void> => {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`]
  const section = `${begin}\n\n${text.trim()}\n\n${end}`
  const old = await readFile(file, 'utf8').catch(() => heading)
  const [from, to] = [old.indexOf(begin), old.indexOf(end)]
  const next =
    from >= 0 && to > from ? old.slice(0, from) + section + old.slice(to + end.length) : `${old}\n${section}\n`
  await writeFile(file, next)
}

export type Finding = {
  readonly name: string
  readonly isShort: boolean
  readonly text: string
  readonly aims?: readonly Aim[]
}

const ratiosFile = join(root, 'bench/ratios.json')
const readRatios = async (): Promise<KeptRatios> => JSON.parse(await readFile(ratiosFile, 'utf8')) as KeptRatios

/**
 * Prints what was found. A full run replaces its section of RESULTS.md, and its ratios in ratios.json; one with `-- --compare` keeps
 * nothing, and fails when a ratio is worse than the kept one.
 */
export const publish = async ({ name, isShort, text, aims = [] }: Finding): Promise<void> => {
  process.stdout.write(`\n${text}\n`)
  const ratios = aims.flatMap((aim) => aim.ratios ?? [])
  if (process.argv.includes('--compare')) {
    const worse = regressions((await readRatios())[name] ?? {}, ratios)
    for (const line of worse) say(`worse: ${line}`)
    if (worse.length > 0) process.exitCode = 1
  } else if (!isShort) {
    await writeSection(name, text)
    if (ratios.length === 0) return
    const kept = { ...(await readRatios()), [name]: toKeep(ratios) }
    await writeFile(ratiosFile, `${JSON.stringify(kept, null, 2)}\n`)
  }
}

/** What is under way, for whoever waits. */
export const say = (line: string): void => {
  process.stderr.write(`${line}\n`)
}
