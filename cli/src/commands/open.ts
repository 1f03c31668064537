import { openInBrowser } from '../browser.ts'
import type { Command } from '../command.ts'
import { exits } from '../exit.ts'
import { serverFor } from '../settings.ts'

const pages = { console: '/console', docs: '/docs', device: '/device' } as const
type Page = keyof typeof pages

/** The console where the server has one, else the pages of the API. */
const pageOf = async (url: string): Promise<Page> => {
  const answer = await fetch(`${url}${pages.console}`, { method: 'HEAD', signal: AbortSignal.timeout(5000) }).catch(
    () => undefined,
  )
  return answer?.ok ? 'console' : 'docs'
}

export const open: Command = {
  name: 'open',
  summary: 'Open a page of the server in the browser',
  about: 'Without a terminal it prints the address alone.',
  takes: [{ name: 'PAGE', about: 'Which page', choices: Object.keys(pages) }],
  flags: { print: { about: 'Print the address, and open nothing' } },
  async run(context) {
    const { terminal, args, env } = context
    const { url } = await serverFor(context)
    const page = `${url}${pages[(args[0] as Page | undefined) ?? (await pageOf(url))]}`
    const isOpening = terminal.isInteractive && !terminal.isJson && !context.has('print')
    const opened = isOpening && (await openInBrowser(page, env))
    terminal.answer({ url: page }, () => terminal.print(opened ? `Opened ${page}` : page))
    return exits.done
  },
}
