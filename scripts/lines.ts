// Lines of SQL have at most 120 characters, as those of TypeScript have. A long word that cannot be broken, such as a regular expression, may stand beyond.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

export const mostCharacters = 120
const folders = ['db', 'functions', 'policies', 'sql']

/** Whether a line could be broken at a space: one that is a single long word cannot. */
const isLong = (line: string): boolean =>
  line.length > mostCharacters &&
  Math.max(
    ...line
      .trim()
      .split(' ')
      .map((word) => word.length),
  ) <
    mostCharacters - 40

/** `functions/tenant/streaks.sql:12: 140 characters` for each line of these folders that is too long. */
export const lineProblems = async (base: string): Promise<string[]> => {
  const problems: string[] = []
  for (const folder of folders) {
    const names = await readdir(join(base, folder), { recursive: true })
    for (const name of names.filter((each) => each.endsWith('.sql')).sort()) {
      const text = await readFile(join(base, folder, name), 'utf8')
      for (const [index, line] of text.split('\n').entries())
        if (isLong(line))
          problems.push(`${folder}/${name}:${index + 1}: ${line.length} characters, at most ${mostCharacters}`)
    }
  }
  return problems
}
