import { readdir, readFile, stat } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '#server/root.ts'

const folders = ['.', 'docs', 'deploy', 'sdk', 'cli', 'supabase', 'bench', 'proofs']

const pages = async (): Promise<string[]> => {
  const found = await Promise.all(
    folders.map(async (folder) => (await readdir(join(root, folder))).map((name) => join(folder, name))),
  )
  return found.flat().filter((path) => path.endsWith('.md'))
}

const withoutCode = (text: string) => text.replace(/```.*?```/gs, '').replace(/`[^`\n]*`/g, '')

/** The anchors of headings, as GitHub makes them. */
const anchorsOf = (text: string): string[] =>
  [...text.replace(/```.*?```/gs, '').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )

const brokenLinks = async (page: string): Promise<string[]> => {
  const text = await readFile(join(root, page), 'utf8')
  const targets = [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)
  const broken: string[] = []
  for (const target of targets.filter((link) => !/^[a-z]+:/.test(link))) {
    const [path = '', anchor] = target.split('#')
    const file = path === '' ? page : join(dirname(page), path)
    const exists = await stat(join(root, file)).catch(() => null)
    if (!exists) broken.push(`${page}: ${target}`)
    else if (anchor !== undefined && !anchorsOf(await readFile(join(root, file), 'utf8')).includes(anchor))
      broken.push(`${page}: ${target}`)
  }
  return broken
}

test('links between pages lead to files and headings that exist', async () => {
  const all = await pages()
  expect(all.length).toBeGreaterThan(60)
  expect((await Promise.all(all.map(brokenLinks))).flat()).toEqual([])
})

test('files that pages name are there', async () => {
  const named = async (page: string) => {
    const text = await readFile(join(root, page), 'utf8')
    return (
      [
        ...text.matchAll(
          /`((?:server|functions|policies|sql|workers|scripts|test|console|cli)\/[\w/.-]+\.(?:ts|tsx|sql|mjs))`/g,
        ),
      ]
        .map(([, path = '']) => path)
        // the area that CONTRIBUTING takes as its example, and the short form of a folder of functions
        .filter((path) => !/reviews|^functions\/tenant\/streaks\.sql$/.test(path))
        .map((path) => ({ page, path }))
    )
  }
  const all = (await Promise.all((await pages()).map(named))).flat()
  expect(all.length).toBeGreaterThan(100)
  const missing = await Promise.all(
    all.map(async ({ page, path }) => ((await stat(join(root, path)).catch(() => null)) ? [] : [`${page}: ${path}`])),
  )
  expect(missing.flat()).toEqual([])
})

test('tests that proofs run are there', async () => {
  const proofs = (await readdir(join(root, 'proofs'))).filter((name) => name.endsWith('.ts'))
  const texts = await Promise.all(proofs.map((name) => readFile(join(root, 'proofs', name), 'utf8')))
  const named = texts.flatMap((text) => {
    const [, stems = ''] = /const usual =\s+'([^']+)'/.exec(text) ?? []
    const files = [...text.matchAll(/'test\/([\w/-]+)\.test\.ts'/g)].map(([, stem = '']) => stem)
    return [...files, ...stems.split(' ').filter((stem) => stem)]
  })
  expect(named.length).toBeGreaterThan(50)
  const missing = await Promise.all(
    named.map(async (stem) => ((await stat(join(root, `test/${stem}.test.ts`)).catch(() => null)) ? [] : [stem])),
  )
  expect(missing.flat()).toEqual([])
})

test('docs/README.md lists every guide', async () => {
  const list = await readFile(join(root, 'docs/README.md'), 'utf8')
  const guides = (await pages()).filter((page) => dirname(page) === 'docs' && page !== 'docs/README.md')
  expect(guides.filter((page) => !list.includes(`](${relative('docs', page)})`))).toEqual([])
})
