import { existsSync, readdirSync } from 'node:fs'
import { basename, join, sep } from 'node:path'
import type { Metafile, Plugin } from 'esbuild'
import { consoleForms } from '#server/console/forms.ts'
import { mantineByFile, mantineStyles } from '#server/console/mantine.ts'
import { root } from '#server/root.ts'

export const consoleSources = join(root, 'console/src')

const virtual = (filter: RegExp, loader: 'js' | 'css', contents: () => Promise<string>): Plugin => ({
  name: `console:${loader}`,
  setup: (build) => {
    const namespace = `console-${loader}`
    build.onResolve({ filter }, ({ path }) => ({ path, namespace }))
    build.onLoad({ filter: /.*/, namespace }, async () => ({
      contents: await contents(),
      loader,
      resolveDir: consoleSources,
    }))
  },
})

/** The module `console:areas`: every folder of the console with an `area.ts`. */
const areas = async (): Promise<string> => {
  const folders = readdirSync(consoleSources)
    .filter((name) => existsSync(join(consoleSources, name, 'area.ts')))
    .sort()
  const imports = folders.map((name, n) => `import { area as a${n} } from './${name}/area.ts'`)
  const declared = folders.map((_, n) => `a${n}`).join(', ')
  return `${imports.join('\n')}\nimport { joined } from './areas.ts'\nexport const areas = joined([${declared}])`
}

/** The style sheet `console:variables.css`: the variables of the theme, which Mantine would put into a style element. */
const variables = async (): Promise<string> => {
  const mantine = await import('@mantine/core')
  // not part of the server's program: it is read when the console is built
  const themeFile: string = join(consoleSources, 'theme.ts')
  const own = (await import(themeFile)) as {
    theme: Parameters<typeof mantine.mergeMantineTheme>[1]
    variables: import('@mantine/core').CSSVariablesResolver
  }
  const theme = mantine.mergeMantineTheme(mantine.DEFAULT_THEME, own.theme)
  const base = mantine.defaultCssVariablesResolver(theme)
  const added = own.variables(theme)
  return mantine.convertCssVariables(
    {
      variables: { ...base.variables, ...added.variables },
      light: { ...base.light, ...added.light },
      dark: { ...base.dark, ...added.dark },
    },
    ':root',
  )
}

/** The style sheets that stand beside the part that they are for. They come after `style.css`, and override it. */
const sheetsOfParts = (): readonly string[] =>
  readdirSync(consoleSources, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.css') && name !== 'style.css')
    .sort()
    .map((name) => `./${name.replaceAll(sep, '/')}`)

export type Bundle = {
  readonly files: readonly { readonly name: string; readonly bytes: Buffer }[]
  /** What the scripts are made of, for a test of their size. */
  readonly metafile: Metafile
}

const common = {
  tsconfig: join(root, 'console/tsconfig.json'),
  outdir: '/console',
  entryNames: '[name]-[hash]',
  chunkNames: '[name]-[hash]',
  bundle: true,
  minify: true,
  write: false,
  target: 'es2022',
  legalComments: 'none',
  logLevel: 'silent',
} as const

const bundleOnce = async (): Promise<Bundle> => {
  // a development dependency: a container has the bundle and no sources
  const { build, stop } = await import('esbuild')
  try {
    const scripts = await build({
      ...common,
      entryPoints: { main: join(consoleSources, 'main.tsx') },
      splitting: true,
      metafile: true,
      format: 'esm',
      platform: 'browser',
      jsx: 'automatic',
      define: { 'process.env.NODE_ENV': '"production"' },
      plugins: [virtual(/^console:areas$/, 'js', areas), consoleForms(consoleSources), mantineByFile()],
    })
    const sheets = [
      ...(await mantineStyles(scripts.metafile)),
      ...['charts', 'dates', 'notifications', 'spotlight'].map((name) => `@mantine/${name}/styles.css`),
      'console:variables.css',
      './style.css',
      ...sheetsOfParts(),
    ]
    const styles = await build({
      ...common,
      stdin: {
        contents: sheets.map((sheet) => `@import ${JSON.stringify(sheet)};`).join('\n'),
        loader: 'css',
        resolveDir: consoleSources,
        sourcefile: 'main.css',
      },
      entryNames: 'main-[hash]',
      plugins: [virtual(/^console:variables\.css$/, 'css', variables)],
    })
    const outputs = [...scripts.outputFiles, ...styles.outputFiles]
    return {
      files: outputs.map(({ path, contents }) => ({ name: basename(path), bytes: Buffer.from(contents) })),
      metafile: scripts.metafile,
    }
  } finally {
    // esbuild is a process of its own, which would outlive the build
    await stop()
  }
}

let last: Promise<unknown> = Promise.resolve()

/**
 * Bundles the console from its sources with esbuild, in memory: a script for what every page needs, one for each page,
 * and one style sheet. One at a time in a process: the end of a bundle stops esbuild, which another would wait for.
 */
export const bundleConsole = (): Promise<Bundle> => {
  const bundle = last.then(bundleOnce)
  last = bundle.catch(() => undefined)
  return bundle
}
