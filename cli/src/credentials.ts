import { chmod, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { CliError, exits } from './exit.ts'

export type Login = {
  readonly access_token: string
  readonly refresh_token: string
  readonly email: string
  /** How the server's page lists this sign-in. */
  readonly client_name: string
}
type Stored = {
  readonly version: 1
  readonly current: string | null
  readonly servers: Readonly<Record<string, Login>>
}
type Env = Readonly<Record<string, string | undefined>>

const nothing: Stored = { version: 1, current: null, servers: {} }

/** Where the operating system keeps what belongs to a person and a program. */
export const configFolder = (env: Env, platform: NodeJS.Platform = process.platform): string => {
  const home = env['HOME'] || homedir()
  if (platform === 'win32') return join(env['APPDATA'] || join(home, 'AppData', 'Roaming'), 'trellis')
  // one that is set holds on a Mac too; a relative one is void, as its specification says
  const named = env['XDG_CONFIG_HOME']
  if (named?.startsWith('/')) return join(named, 'trellis')
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', 'trellis')
  return join(home, '.config', 'trellis')
}

const isLogin = (value: unknown): value is Login =>
  ['access_token', 'refresh_token', 'email', 'client_name'].every(
    (name) => typeof (value as Record<string, unknown> | null)?.[name] === 'string',
  )

export type Credentials = {
  readonly file: string
  read(url: string): Promise<Login | undefined>
  /** The server of the last sign-in. */
  current(): Promise<string | undefined>
  write(url: string, login: Login): Promise<void>
  remove(url: string): Promise<void>
  /** One at a time, over all processes of this person. */
  alone<T>(work: () => Promise<T>): Promise<T>
}

export const createCredentials = (env: Env): Credentials => {
  const file = join(configFolder(env), 'credentials.json')
  const lock = `${file}.lock`

  const load = async (): Promise<Stored> => {
    let text: string
    try {
      const { mode } = await stat(file)
      // a copy or a backup may have opened it to others
      if (process.platform !== 'win32' && (mode & 0o077) !== 0) await chmod(file, 0o600)
      text = await readFile(file, 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return nothing
      throw error
    }
    try {
      const { current, servers } = JSON.parse(text) as Stored
      const logins = Object.entries(servers ?? {}).filter(([, login]) => isLogin(login))
      return { version: 1, current: typeof current === 'string' ? current : null, servers: Object.fromEntries(logins) }
    } catch {
      throw new CliError('CREDENTIALS_BROKEN', exits.failed, `${file} is not JSON.`, 'Remove it, and sign in again.')
    }
  }

  /** Whole or not at all, and never readable for others, not even for a moment. */
  const save = async (stored: Stored): Promise<void> => {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    const making = `${file}.${process.pid}`
    await rm(making, { force: true })
    const handle = await open(making, 'wx', 0o600)
    try {
      await handle.writeFile(`${JSON.stringify(stored, null, 2)}\n`)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(making, file)
  }

  /** A lock of a process that was killed is no lock. */
  const isAbandoned = async (): Promise<boolean> => {
    const pid = Number(await readFile(lock, 'utf8').catch(() => ''))
    const age = await stat(lock).then(
      ({ mtimeMs }) => Date.now() - mtimeMs,
      () => 0,
    )
    if (age > 60_000) return true
    try {
      return pid > 0 && !process.kill(pid, 0)
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ESRCH'
    }
  }

  const alone: Credentials['alone'] = async (work) => {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    for (;;) {
      const handle = await open(lock, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error
      })
      if (handle) {
        await handle.writeFile(String(process.pid))
        await handle.close()
        break
      }
      if (await isAbandoned()) await rm(lock, { force: true })
      // Node cannot wait for a lock of the operating system: it looks again
      else await new Promise((resolve) => setTimeout(resolve, 25))
    }
    try {
      return await work()
    } finally {
      await rm(lock, { force: true })
    }
  }

  return {
    file,
    alone,
    read: async (url) => {
      const { servers } = await load()
      return Object.hasOwn(servers, url) ? servers[url] : undefined
    },
    current: async () => (await load()).current ?? undefined,
    async write(url, login) {
      const stored = await load()
      await save({ version: 1, current: url, servers: { ...stored.servers, [url]: login } })
    },
    async remove(url) {
      const { current, servers } = await load()
      const left = Object.fromEntries(Object.entries(servers).filter(([one]) => one !== url))
      await save({ version: 1, current: current === url ? (Object.keys(left)[0] ?? null) : current, servers: left })
    },
  }
}
