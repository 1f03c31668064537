import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, stop } from 'esbuild'
import { temporaryFolder } from '#test/support/process.ts'

/** Sources of an app in which paying for an empty cart throws. */
export const appSources = {
  'src/cart.ts': `export type Item = { price: number }

/** The sum of what is in a cart. */
export const totalOfCart = (items: Item[]): number => {
  let sum = 0
  for (const item of items) sum += priceOfItem(item)
  return sum
}

function priceOfItem(item: Item): number {
  if (item.price < 0) throw new RangeError('A price below zero')
  return item.price
}
`,
  'src/main.ts': `import { totalOfCart } from './cart.ts'

class Checkout {
  constructor(private readonly prices: number[]) {}
  payForEverything() {
    return totalOfCart(this.prices.map((price) => ({ price })))
  }
}

export const startCheckout = () => new Checkout([1, -1]).payForEverything()
`,
} as const

export type Bundled = {
  readonly folder: string
  readonly file: string
  readonly map: string
  /** The stack of the error that the bundle throws, as V8 writes it. */
  readonly stack: string
}

/** Bundles and minifies sources with esbuild, runs what came of them, and answers the stack of its error. */
export const bundleApp = async (
  isMinified = true,
  sources: Readonly<Record<string, string>> = appSources,
): Promise<Bundled> => {
  const folder = await temporaryFolder()
  for (const [name, text] of Object.entries(sources)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), text)
  }
  const file = join(folder, 'dist/assets/main.js')
  await build({
    entryPoints: [join(folder, 'src/main.ts')],
    outfile: file,
    bundle: true,
    format: 'esm',
    minify: isMinified,
    sourcemap: 'external',
    logLevel: 'error',
  })
  await stop()
  const { startCheckout } = await import(pathToFileURL(file).href)
  try {
    startCheckout()
  } catch (error) {
    return { folder, file, map: `${file}.map`, stack: String((error as Error).stack) }
  }
  throw new Error('the bundle threw nothing')
}

type Place = { readonly name: string; readonly line: number; readonly column: number }

/** The frames of a stack of V8 that are in the bundle. */
export const placesOf = ({ stack, file }: Bundled): readonly Place[] =>
  stack.split('\n').flatMap((text) => {
    const [, name = '', line, column] = /^\s+at (?:(.*) \()?[^(]*main\.js:(\d+):(\d+)\)?$/.exec(text) ?? []
    return line !== undefined && text.includes(file) ? [{ name, line: Number(line), column: Number(column) }] : []
  })
