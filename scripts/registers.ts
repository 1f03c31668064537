import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sqlstates } from '#server/database/sqlstates.ts'

export type Source = { readonly file: string; readonly text: string }

const sqlstateRegister = 'server/database/sqlstates.ts'
/** Where advisory locks have their numbers: of transactions, and of sessions. */
const lockRegisters = ['sql/shared/45_locks.sql', 'fleet/locks.ts']

/** A literal of a class that Postgres has or that is ours, and whatever is raised or caught by name. */
const literal = /'((?:0[0-389ABFLPZ]|2[0-8BDF]|3[489BDF]|4[024]|5[34578]|XX|P0|F0|HV)[0-9A-Z]{3}|TR\d{3})'/g
const named = /\b(?:errcode\s*=|sqlstate)\s*'([^']+)'/gi
const lockCall = /\bpg_(?:try_)?advisory_\w+\s*\(/
/** All of our numbers begin with 73054. */
const lockNumber = /\b\d[\d_]{6,}\d\b/g

/** SQLSTATEs that are used and not in the register, with file and line; and those of the register that nothing uses. */
export const sqlstateProblems = (sources: readonly Source[], register: Readonly<Record<string, string>>): string[] => {
  const known = new Map(
    Object.entries(register).flatMap(([code, meaning]) => [
      [code, code],
      [nameOf(meaning), code],
    ]),
  )
  const used = new Set<string>()
  const problems: string[] = []
  for (const { place, line } of linesOf(sources.filter(({ file }) => file !== sqlstateRegister)))
    for (const [, code = ''] of [...line.matchAll(literal), ...line.matchAll(named)]) {
      const found = known.get(code)
      if (found) used.add(found)
      else problems.push(`${place}: SQLSTATE ${code} is not in ${sqlstateRegister}`)
    }
  const unused = Object.keys(register).filter((code) => !used.has(code))
  return [...new Set(problems), ...unused.map((code) => `${sqlstateRegister}: nothing uses ${code}`)]
}

const nameOf = (meaning: string) => meaning.split(':')[0] ?? ''

/** Advisory locks that are taken outside the registers by a number that is in neither, and numbers that two of them have. */
export const lockProblems = (sources: readonly Source[]): string[] => {
  const registered = new Map<string, string>()
  const problems: string[] = []
  for (const { place, line } of linesOf(sources.filter(({ file }) => lockRegisters.includes(file))))
    for (const number of numbersOf(line)) {
      const other = registered.get(number)
      if (other) problems.push(`${place}: the advisory lock ${number} is also at ${other}`)
      registered.set(number, place)
    }
  for (const { place, line } of linesOf(sources.filter(({ file }) => !lockRegisters.includes(file)))) {
    const numbers = numbersOf(line)
    for (const number of numbers.filter((one) => !registered.has(one)))
      problems.push(`${place}: the advisory lock ${number} is not in ${lockRegisters.join(' or ')}`)
    if (lockCall.test(line) && numbers.length === 0)
      problems.push(`${place}: take an advisory lock by its name, with internal.advisory_lock`)
  }
  return problems
}

const numbersOf = (line: string) =>
  [...line.matchAll(lockNumber)]
    .map(([number]) => number.replaceAll('_', ''))
    .filter((number) => number.startsWith('73054'))

/** Lines without their comments; a register may name a number in a comment. */
const linesOf = (sources: readonly Source[]) =>
  sources.flatMap(({ file, text }) =>
    text.split('\n').map((line, index) => ({
      place: `${file}:${index + 1}`,
      line: lockRegisters.includes(file) ? line : line.replace(/(^|\s)(--|\/\/).*/, ''),
    })),
  )

const root = join(fileURLToPath(import.meta.url), '../..')

/** What npm run check says of the registers of SQLSTATEs and advisory locks. */
export const registerProblems = async (): Promise<string[]> => {
  const sources: Source[] = []
  const patterns = ['functions/**/*.sql', 'policies/**/*.sql', 'sql/shared/*.sql', 'sql/{tenant,control}/*.sql']
  for await (const file of glob([...patterns, '{server,fleet,workers,scripts}/**/*.ts'], { cwd: root }))
    if (file !== 'scripts/registers.ts') sources.push({ file, text: await readFile(join(root, file), 'utf8') })
  sources.sort((a, b) => a.file.localeCompare(b.file))
  return [...sqlstateProblems(sources, sqlstates), ...lockProblems(sources)]
}
