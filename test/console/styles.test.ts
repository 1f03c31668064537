import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { consoleSources } from '#server/console/bundle.ts'

/** Style sheets and sources of the console: neither has a class that the other does not know. */
const read = async (pattern: string) => {
  const files: { readonly name: string; readonly text: string }[] = []
  for await (const name of glob(pattern, { cwd: consoleSources }))
    files.push({ name, text: await readFile(join(consoleSources, name), 'utf8') })
  return files
}
const sheets = await read('**/*.css')
const sources = await read('**/*.{ts,tsx}')

/** The text of an expression in braces that begins at a place. */
const braced = (text: string, from: number): string => {
  let depth = 0
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === '{') depth += 1
    if (text[at] === '}') depth -= 1
    // what a value is compared with is no class
    if (depth === 0) return text.slice(from, at + 1).replace(/[!=]== ?['"][^'"]*['"]/g, '')
  }
  return ''
}

const used = new Map<string, string>()
for (const { name, text } of sources)
  for (const { index, 0: found } of text.matchAll(/\bclassName(?==["{])|\bclassName: (?=')/g)) {
    const from = index + found.length
    const value = text.startsWith('={', from)
      ? braced(text, from + 1)
      : text.slice(from).replace(/^=/, '').split('\n')[0]
    const literals = text.startsWith('={', from)
      ? value?.matchAll(/['"`]([^'"`]*)['"`]/g)
      : value?.matchAll(/^["']([^"']*)["']/g)
    for (const [, literal = ''] of literals ?? []) for (const one of literal.split(/\s+/)) if (one) used.set(one, name)
  }

const ruled = new Map<string, string>()
for (const { name, text } of sheets)
  for (const [, selector = ''] of text.replace(/\/\*.*?\*\//gs, '').matchAll(/([^{}]+)\{/g))
    for (const [, one = ''] of selector.matchAll(/\.([a-zA-Z][\w-]*)/g)) ruled.set(one, name)

test('every class of a style sheet is used', () => {
  expect(ruled.size).toBeGreaterThan(100)
  // those of Mantine are its own
  const idle = [...ruled].filter(([one]) => !used.has(one) && !one.startsWith('mantine-'))
  expect(idle.map(([one, sheet]) => `${sheet}: .${one}`)).toEqual([])
})

test('every class that a source names has a rule', () => {
  const bare = [...used].filter(([one]) => !ruled.has(one))
  expect(bare.map(([one, name]) => `${name}: ${one}`)).toEqual([])
})
