import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Metafile, Plugin } from 'esbuild'
import { root } from '#server/root.ts'

const core = join(root, 'node_modules/@mantine/core')

/** The file of each name that @mantine/core exports. */
const filesOfNames = async (): Promise<ReadonlyMap<string, string>> => {
  const index = await readFile(join(core, 'esm/index.mjs'), 'utf8')
  const imports = [...index.matchAll(/import \{ ([^}]+) \} from "([^"]+)"/g)]
  return new Map(
    imports.flatMap(([, names = '', file = '']) =>
      names.split(', ').map((name) => {
        // some it passes on from other packages
        const from = file.startsWith('.') ? join(core, 'esm', file) : file
        return [name.split(' as ').at(-1) ?? '', from] as const
      }),
    ),
  )
}

const fromCore = /import\s*\{([^}]*)\}\s*from\s*['"]@mantine\/core['"];?/g

/**
 * Imports each name of @mantine/core from the file that has it. Through its index every component that some page uses would be in the script that every page loads:
 * esbuild puts a module where all that reach it meet.
 */
export const mantineByFile = (): Plugin => ({
  name: 'mantine-by-file',
  setup: async (build) => {
    const files = await filesOfNames()
    const rewritten = (text: string) =>
      text.replace(fromCore, (_, names: string) =>
        names
          .split(',')
          .map((name) => name.trim())
          .filter((name) => name !== '' && !name.startsWith('type '))
          .map((name) => {
            const [outer = ''] = name.split(' as ')
            const file = files.get(outer)
            return file ? `import { ${name} } from ${JSON.stringify(file)}` : `import { ${name} } from '@mantine/core'`
          })
          // one line, so that places in error messages stay
          .join('; '),
      )
    build.onLoad({ filter: /(console\/src\/.*|@mantine\/\w+\/esm\/.*)\.(tsx?|mjs)$/ }, async ({ path }) => ({
      contents: rewritten(await readFile(path, 'utf8')),
      loader: path.endsWith('.tsx') ? 'tsx' : path.endsWith('.ts') ? 'ts' : 'js',
    }))
  },
})

/** The style sheets of the components of @mantine/core that a bundle contains, in the order that they need. */
export const mantineStyles = async ({ inputs }: Metafile): Promise<readonly string[]> => {
  const folder = join(core, 'styles')
  const used = new Set(Object.keys(inputs).flatMap((path) => /@mantine\/core\/.*\/(\w+)\.mjs$/.exec(path)?.[1] ?? []))
  const names = (await readdir(folder)).filter((name) => /^\w+\.css$/.test(name) && used.has(name.replace('.css', '')))
  const all = await readFile(join(core, 'styles.css'), 'utf8')
  const places = await Promise.all(
    ['baseline.css', 'global.css', ...names].map(async (name) => {
      const file = join(folder, name)
      return { file, place: all.indexOf((await readFile(file, 'utf8')).trim().slice(0, 200)) }
    }),
  )
  return places.sort((one, other) => one.place - other.place).map(({ file }) => file)
}
