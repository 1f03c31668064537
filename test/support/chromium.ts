import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { build, stop } from 'esbuild'
import { type BrowserContext, chromium } from 'playwright-core'
import { afterAll } from 'vitest'

/** The browser of the machine, which CHROMIUM_BIN may name. */
export const chromiumPath = [process.env['CHROMIUM_BIN'] ?? '', '/usr/bin/chromium', '/usr/bin/google-chrome'].find(
  (path) => path !== '' && existsSync(path),
)

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
  const browser = await chromium.launch({
    executablePath: chromiumPath as string,
    // containers give it neither namespaces of its own nor a large /dev/shm
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  })
  afterAll(async () => {
    await browser.close()
    server.close()
  })
  const open = async (context: BrowserContext) => {
    const page = await context.newPage()
    await page.goto(url)
    await page.waitForFunction('globalThis.sdk !== undefined')
    return page
  }
  return { browser, open, profile: () => browser.newContext() }
}
