import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Context } from './command.ts'

const programOf = (env: Context['env']): [string, string[]] => {
  const named = env['BROWSER']
  if (named) return [named, []]
  if (process.platform === 'darwin') return ['open', []]
  if (process.platform === 'win32') return ['rundll32', ['url.dll,FileProtocolHandler']]
  return ['xdg-open', []]
}

/** Shows a page in the person's browser; false where there is none. No shell reads the address. */
export const openInBrowser = async (url: string, env: Context['env']): Promise<boolean> => {
  const { protocol, href } = new URL(url)
  if (protocol !== 'https:' && protocol !== 'http:') return false
  const [program, args] = programOf(env)
  const child = spawn(program, [...args, href], { stdio: 'ignore', detached: true })
  try {
    await once(child, 'spawn')
  } catch {
    return false
  }
  child.unref()
  return true
}
