import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Context } from './command.ts'
import { createCredentials } from './credentials.ts'
import { CliError, exits, usageError } from './exit.ts'

/** `trellis.json`: which project the files beside it belong to. */
export type Manifest = { readonly version: 1; readonly url?: string; readonly project?: string }
export type Found = { readonly folder: string; readonly manifest: Manifest }

export const manifestName = 'trellis.json'

const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i
export const isUuid = (text: string): boolean => uuid.test(text)

const checkedManifest = (text: string, file: string): Manifest => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw usageError(`${file} is not JSON: ${(error as Error).message}`)
  }
  const { version, url, project } = (value ?? {}) as Record<string, unknown>
  if (version !== 1) throw usageError(`${file} must have "version": 1.`, 'A later version of trellis may have made it.')
  if (url !== undefined && typeof url !== 'string') throw usageError(`"url" of ${file} must be text.`)
  if (project !== undefined && (typeof project !== 'string' || !isUuid(project))) {
    throw usageError(`"project" of ${file} must be the id of a project.`)
  }
  return { version: 1, ...(url === undefined ? {} : { url }), ...(project === undefined ? {} : { project }) }
}

/** The `trellis.json` of this folder or of one above it. */
export const findManifest = async (from: string): Promise<Found | undefined> => {
  for (let folder = from; ; folder = dirname(folder)) {
    const file = join(folder, manifestName)
    const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error
    })
    if (text !== undefined) return { folder, manifest: checkedManifest(text, file) }
    if (dirname(folder) === folder) return undefined
  }
}

export const requireManifest = async ({ cwd }: Context): Promise<Found> => {
  const found = await findManifest(cwd)
  if (!found) throw usageError(`There is no ${manifestName} here or above.`, 'trellis init makes one.')
  return found
}

const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/** The address of a server in the form under which its sign-in is kept. */
export const serverOf = (text: string, env: Context['env']): string => {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    throw usageError(`"${text}" is no URL: it begins with https://.`)
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw usageError('The URL of a server begins with https://.')
  if (url.username || url.password) throw usageError('The URL of a server has no user name and no password.')
  if (url.protocol === 'http:' && !loopback.test(url.hostname) && env['TRELLIS_INSECURE'] !== '1') {
    throw usageError(
      `A token is not sent to ${url.hostname} without TLS.`,
      'Use https://, or set TRELLIS_INSECURE=1 where the network is yours.',
    )
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')}`
}

export type Server = {
  readonly url: string
  /** Named by whoever runs the program, not by a file that came with a repository. */
  readonly isNamed: boolean
}

export const serverFor = async (context: Context): Promise<Server> => {
  const { env, cwd } = context
  const named = context.option('url') ?? (env['TRELLIS_URL'] || undefined)
  if (named) return { url: serverOf(named, env), isNamed: true }
  const url = (await findManifest(cwd))?.manifest.url ?? (await createCredentials(env).current())
  if (url) return { url: serverOf(url, env), isNamed: false }
  throw usageError('Say which server: --url, or TRELLIS_URL.', 'trellis login --url https://... remembers it.')
}

export const projectFor = async (context: Context): Promise<string> => {
  const { env, cwd } = context
  const named = context.option('project') ?? (env['TRELLIS_PROJECT'] || undefined)
  if (named && !isUuid(named)) throw usageError('--project and TRELLIS_PROJECT are the id of a project, a uuid.')
  const project = named ?? (await findManifest(cwd))?.manifest.project
  if (!project) {
    throw new CliError(
      'NOT_LINKED',
      exits.usage,
      'Say which project: --project, or TRELLIS_PROJECT.',
      'trellis link remembers it.',
    )
  }
  return project.toLowerCase()
}
