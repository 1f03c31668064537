import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import axe from 'axe-core'
import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { expect } from 'vitest'
import { launchChromium } from '#test/support/chromium.ts'
import { type Filled, fillProject, fillWithUsers } from '#test/support/filled_project.ts'
import { type Client, type HarnessOptions, type Project, startHarness } from '#test/support/harness.ts'

export const wide = { width: 1440, height: 900 }
export const phone = { width: 390, height: 844 }

const rules = { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }

/** The console of a test server in a real browser, as its developer uses it. Each page collects what the browser complains of. */
export const startConsole = async (options: HarnessOptions = {}) => {
  const harness = await startHarness(options)
  const project = await harness.project()
  const browser = await launchChromium()
  // the cookie is Secure: the name of this machine counts as a safe origin, its address does not
  const url = harness.url.replace('127.0.0.1', 'localhost')
  /** Errors of scripts, reports of the page's policy, and requests that leave the origin. */
  const complaints: string[] = []

  const context = (settings: BrowserContextOptions = {}): Promise<BrowserContext> =>
    // colours change at once: what is in the middle of a transition has the contrast of neither
    browser.newContext({ viewport: wide, reducedMotion: 'reduce', ...settings })

  /** A page that nobody has signed in on. */
  const open = async (on?: BrowserContext): Promise<Page> => {
    const page = await (on ?? (await context())).newPage()
    page.on('pageerror', (error) => complaints.push(`${page.url()}: ${error.message}`))
    page.on('console', (message) => {
      if (/Content Security Policy|Trusted|violates/i.test(message.text()))
        complaints.push(`${page.url()}: ${message.text()}`)
    })
    page.on('request', (request) => {
      if (!request.url().startsWith(url) && !/^(data|blob):/.test(request.url()))
        complaints.push(`asked ${request.url()}`)
    })
    // the first load waits for the bundle
    await page.goto(`${url}/console`, { timeout: 120_000 })
    return page
  }

  /** A page of the developer of the project, or of another one. */
  const signedIn = async (on?: BrowserContext, email = project.developer.email): Promise<Page> => {
    const page = await open(on)
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password', { exact: true }).fill('a long passphrase')
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    // the first load waits for the bundle
    await page.getByRole('heading', { name: 'Projects', exact: true }).waitFor({ timeout: 120_000 })
    return page
  }

  /** The address of a page of a project. */
  const at = (path: string, of: { readonly id: string } = project) =>
    `${url}/console/projects/${of.id}/${path}`.replace(/\/$/, '')

  /** Opens a page of the project and waits until it has drawn what it asked for. */
  const go = async (page: Page, path: string, of: { readonly id: string } = project) => {
    const address = at(path, of)
    // a full load renews the session, of which a server allows 30 a minute and address
    if (page.url().startsWith(`${url}/console/projects/`)) {
      await page.evaluate(`history.pushState({}, '', ${JSON.stringify(address)})`)
    } else await page.goto(address)
    await page.locator(`h1[data-at="${new URL(address).pathname.replace('/console', '')}"]`).waitFor()
    await settled(page)
  }

  return { harness, project, browser, url, complaints, context, open, signedIn, at, go }
}

/** Waits until no part of the page is loading, and what was drawn last has its final colours. */
export const settled = async (page: Page): Promise<void> => {
  await expect.poll(() => page.locator('[aria-busy=true], .mantine-Skeleton-root').count(), { timeout: 30_000 }).toBe(0)
  await page.evaluate(`new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))`)
}

/** Fills a project through its developer, and through its users. */
export const fill = async (project: Project, size?: number, rows?: number): Promise<Filled> => {
  const by = (client: Client) => async (method: string, path: string, body?: unknown) => {
    const send = { POST: client.post, PUT: client.put, PATCH: client.patch }[method as 'POST']
    const answer = await send(path, body as object)
    expect(answer.status, `${method} ${path}: ${answer.text}`).toBeLessThan(300)
    return answer.data
  }
  const ask = by(project.admin)
  const filled = await fillProject(ask, new Date(), size, rows)
  await fillWithUsers(ask, (userId, ...request) => by(project.onBehalfOf(userId))(...request), filled)
  return filled
}

/**
 * What axe-core finds on the page, one line each. It reads the styles of a page in many steps: an answer that arrives between two of
 * them enables a button that it takes for an enabled one in the colours of a disabled one. What is wrong is so a second time.
 */
export const violations = async (page: Page): Promise<string[]> => {
  await page.evaluate(axe.source)
  const run = async () => {
    const found = (await page.evaluate(`axe.run(document, ${JSON.stringify(rules)})`)) as axe.AxeResults
    return found.violations.flatMap(({ id, nodes }) =>
      nodes.slice(0, 3).map(({ html }) => `${id}: ${html.slice(0, 200)}`),
    )
  }
  if ((await run()).length === 0) return []
  await page.waitForLoadState('networkidle')
  await settled(page)
  return run()
}

/** A picture of the page in the folder that CONSOLE_PICTURES names. */
export const picture = async (page: Page, name: string): Promise<void> => {
  const folder = process.env['CONSOLE_PICTURES']
  if (!folder) return
  await mkdir(folder, { recursive: true })
  await page.screenshot({ path: join(folder, `console-${name}.png`) })
}
