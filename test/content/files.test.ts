import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { temporaryFolder } from '#test/support/process.ts'
import { sized } from '#test/support/sized.ts'
import { exactText, fileFor, readContent } from '../../cli/src/content_files.ts'
import { inside } from '../../cli/src/inside.ts'

const place = { type: 'article', key: 'welcome', locale: 'en' }

/** What a pull writes, as a push reads it. */
const readBack = async (folder: string, fields: Readonly<Record<string, unknown>>, body: string | undefined) => {
  const { file, text } = fileFor(place, fields, body)
  await rm(join(folder, 'content'), { recursive: true, force: true })
  await inside(folder).write(file, text)
  return { file, fields: (await readContent(folder)).get('article/welcome/en')?.fields ?? {} }
}

test('a field beside the text of a Markdown file may have any separator of lines', async () => {
  const folder = await temporaryFolder()
  const fields = { body: 'Text', title: 'one\u2028two\u2029three\u0085four', 'a "name":\u2028': 'x' }
  expect(await readBack(folder, fields, 'body')).toEqual({ file: 'content/article/welcome/en.md', fields })
})

test('fields of any kind are read as they were written, as JSON and as Markdown', async () => {
  const folder = await temporaryFolder()
  const parts = ['\n', '---\n', '\r', '\r\n', ':', '"', ' ', '$body', '\u2028', '\ufeff', 'é', '{', '#', '\\', '~']
  const text = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...parts) }), fc.string({ unit: 'grapheme' }))
  const name = fc.oneof(
    fc.string({ minLength: 1, maxLength: 12 }),
    fc.constantFrom('body', '$body', 'a:b', 'x\ny', '-'),
  )
  const value = fc.oneof(text, fc.jsonValue())
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(name, value, { maxKeys: 6 }),
      text,
      fc.boolean(),
      async (given, body, isMarkdown) => {
        const fields = JSON.parse(JSON.stringify(isMarkdown ? { ...given, body } : given))
        const found = await readBack(folder, fields, isMarkdown ? 'body' : undefined)
        expect(exactText(found.fields)).toBe(exactText(fields))
      },
    ),
    { numRuns: sized(100, 2000) },
  )
})
