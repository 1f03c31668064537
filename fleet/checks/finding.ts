import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '#server/root.ts'

/** What is wrong with the program: where, what, and what to write where instead. */
export type Finding = {
  /** `server/routes/streaks.ts:12` */
  readonly place: string
  readonly problem: string
  readonly remedy: string
  /** `error`: requests would fail, so no database is changed. `warning`: it may be meant, and only `check:sql` fails. */
  readonly severity: 'error' | 'warning'
}

export const lineOf = ({ place, problem, remedy }: Finding) => `${place}: ${problem} ${remedy}`

export type Sources = { find(text: string | RegExp, under: string): string }

/**
 * Finds where something stands in the files of the program: path and line of the first place, or the folder where it should be. Nothing is read
 * before something is looked for: a program without findings needs no places.
 */
export const sourcesOf = (base: string): Sources => {
  let files: ReadonlyMap<string, string> | undefined
  return {
    find(text, under) {
      files ??= readFiles(base)
      for (const [path, content] of files) {
        if (!path.startsWith(under)) continue
        const at = typeof text === 'string' ? content.indexOf(text) : content.search(text)
        if (at >= 0) return `${path}:${content.slice(0, at).split('\n').length}`
      }
      return under
    },
  }
}

const readFiles = (base: string): ReadonlyMap<string, string> => {
  const folders = ['functions', 'policies', 'db', 'sql'].map((folder) => [base, folder] as const)
  const files = new Map<string, string>()
  for (const [from, folder] of [...folders, [root, 'server/routes'] as const]) {
    const names = existsSync(join(from, folder))
      ? readdirSync(join(from, folder), { recursive: true, encoding: 'utf8' })
      : []
    for (const name of names.filter((one) => /\.(sql|ts)$/.test(one)).sort())
      files.set(`${folder}/${name}`, readFileSync(join(from, folder, name), 'utf8'))
  }
  return files
}

export const escapeRegExp = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
