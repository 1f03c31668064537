// Lines of SQL have at most 120 characters, as those of TypeScript have, and lines of Markdown 160. A long word that cannot be broken, such as a regular
// expression or a link, may stand beyond.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

export const mostCharacters = 120
export const mostOfMarkdown = 160
const sqlFolders = ['db', 'functions', 'policies', 'sql']
const markdownFolders = ['.', 'bench', 'cli', 'docs', 'sdk', 'supabase']

/** Pages that `npm run docs` writes as a whole. */
const generated = ['docs/api.md', 'docs/errors.md', 'docs/hooks.md']

/** Code and links of Markdown are not broken. */
const markdownWord = /(?:!?\[[^\]]*\]\([^)]*\)|`[^`]*`|\S)+/g

const isLong = (line: string, most: number, words: readonly string[]): boolean =>
  line.length > most && Math.max(...words.map((word) => word.length)) < most - 40

const longLinesOfSql = (text: string): number[] =>
  text.split('\n').flatMap((line, index) => (isLong(line, mostCharacters, line.trim().split(' ')) ? [index] : []))

/** Of text alone: tables, headings, HTML and code blocks are as long as they are, and so is what programs write between `<!-- name -->` and its end. */
const longLinesOfMarkdown = (text: string): number[] => {
  const found: number[] = []
  let until: string | null = null
  for (const [index, line] of text.split('\n').entries()) {
    const start = line.trim()
    if (until !== null) {
      if (start === until) until = null
      continue
    }
    const [, fence] = /^(`{3,}|~{3,})/.exec(start) ?? []
    const [, part] = /^<!-- ([^/\s]\S*) -->$/.exec(start) ?? []
    if (fence) until = fence
    else if (part && text.includes(`<!-- /${part} -->`)) until = `<!-- /${part} -->`
    else if (!/^[|#<]/.test(start) && isLong(line, mostOfMarkdown, line.match(markdownWord) ?? [])) found.push(index)
  }
  return found
}

const filesIn = async (base: string, folder: string, ending: string): Promise<string[]> => {
  const names = await readdir(join(base, folder), { recursive: folder !== '.' }).catch(() => [])
  return names
    .filter((name) => name.endsWith(ending) && !name.includes('node_modules'))
    .sort()
    .map((name) => join(folder, name))
}

/** `functions/tenant/streaks.sql:12: 140 characters, at most 120` for each line that is too long. */
export const lineProblems = async (base: string): Promise<string[]> => {
  const problemsOf = async (path: string, most: number, longLines: (text: string) => number[]) => {
    const text = await readFile(join(base, path), 'utf8')
    const lines = text.split('\n')
    return longLines(text).map((index) => `${path}:${index + 1}: ${lines[index]?.length} characters, at most ${most}`)
  }
  const sql = (await Promise.all(sqlFolders.map((folder) => filesIn(base, folder, '.sql')))).flat()
  const markdown = (await Promise.all(markdownFolders.map((folder) => filesIn(base, folder, '.md')))).flat()
  const problems = await Promise.all([
    ...sql.map((path) => problemsOf(path, mostCharacters, longLinesOfSql)),
    ...markdown
      .filter((path) => !generated.includes(path))
      .map((path) => problemsOf(path, mostOfMarkdown, longLinesOfMarkdown)),
  ])
  return problems.flat()
}
