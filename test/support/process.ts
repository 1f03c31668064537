import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '#server/root.ts'
import { freshIp } from '#test/support/client.ts'
import { openLimits } from '#test/support/open_limits.ts'
import { homesOf, runFolder, runVariable } from '#test/support/run.ts'

export type WorkerProcess = {
  readonly child: ChildProcess
  output(): string
  /** Resolves with the exit code; a signal counts as its name. */
  ended: Promise<number | string>
}

/** What this process has started and made, for `endPrograms`. */
const started: WorkerProcess[] = []
const folders: string[] = []

/** Ends all that was started, and only then removes the folders that were made: a server whose data go first leaves its Postgres behind. */
export const endPrograms = async (): Promise<void> => {
  await Promise.all(started.splice(0).map(endServer))
  for (const folder of folders.splice(0))
    for (const home of await homesOf(folder)) await rm(home, { recursive: true, force: true })
}

export type ServerProcess = WorkerProcess & { readonly url: string; readonly dataDir: string }

export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

/** Goes with `endPrograms`, and with the run at the latest. */
export const temporaryFolder = async () => {
  const folder = await mkdtemp(join(await runFolder(), 'p-'))
  folders.push(folder)
  return folder
}

/** What every program of ours gets: modules that another has compiled already are not compiled again. */
export const programEnvironment = {
  PATH: process.env['PATH'] ?? '',
  NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/node-compile'),
}

/** A program of ours in a process group of its own: resolves when it says this text, or has ended. */
const startProgram = async (
  file: string,
  env: Record<string, string>,
  isReady: string,
  of = root,
): Promise<WorkerProcess> => {
  const folder = await runFolder()
  const ours = { ...programEnvironment, [runVariable]: folder, TMPDIR: folder }
  const child = spawn(process.execPath, [join(of, file)], {
    env: { ...ours, LOG_LEVEL: 'warn', GENERAL_RATE_LIMITS: 'off', TRUST_PROXY: 'true', ...openLimits, ...env },
    detached: true,
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => {
      text += String(chunk)
    })
  const ended = once(child, 'exit').then(([code, signal]) => (code ?? signal) as number | string)
  let isOver = false
  void ended.then(() => {
    isOver = true
  })
  const program: WorkerProcess = { child, output: () => text, ended }
  started.push(program)
  while (!text.includes(isReady) && !isOver) await new Promise((resolve) => setTimeout(resolve, 20))
  return program
}

/**
 * Starts the program as `npm start` does, and waits until it answers or ends. Without a DATA_DIR or a DATABASE_URL it starts on data that a
 * first start has made, which saves that start; a test of the first start names a folder of its own. `of` is the program's folder.
 */
export const startServer = async (env: Record<string, string> = {}, of = root): Promise<ServerProcess> => {
  const port = env['PORT'] ?? String(await freePort())
  const dataDir = env['DATA_DIR'] ?? (env['DATABASE_URL'] ? await temporaryFolder() : await copyOfData())
  const started = await startProgram(
    'server/main.ts',
    { ...env, PORT: port, DATA_DIR: dataDir },
    'Trellis is running',
    of,
  )
  return { ...started, url: `http://127.0.0.1:${port}`, dataDir }
}

/** A data folder after a first start and its stop. */
const copyOfData = async (): Promise<string> => {
  const folder = await temporaryFolder()
  await rm(folder, { recursive: true })
  // as root, the files belong to the user that runs Postgres
  await promisify(execFile)('cp', ['-Rp', await madeData(), folder])
  return folder
}

/** The original of the copies, which the first test of the run that needs one makes. */
const madeData = async (): Promise<string> => {
  const made = join(await runFolder(), 'first-start')
  const making = `${made}-making`
  const isMaker = await mkdir(`${made}-has-a-maker`).then(
    () => true,
    () => false,
  )
  if (isMaker) {
    const { child, ended, output } = await startServer({ DATA_DIR: making })
    child.kill('SIGTERM')
    if ((await ended) !== 0) throw new Error(`The first start failed: ${output()}`)
    await rename(making, made)
  }
  for (let waited = 0; !(await stat(made).catch(() => null)); waited += 1) {
    if (waited > 3000) throw new Error('Another test did not finish its first start')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return made
}

/** Starts background jobs alone, as `npm run worker` does. */
export const startWorker = (env: Record<string, string>): Promise<WorkerProcess> =>
  startProgram('workers/main.ts', env, 'The worker is running')

/** Ends a server or a worker whatever state it is in. */
export const endServer = async (server: WorkerProcess): Promise<void> => {
  if (server.child.exitCode === null && server.child.signalCode === null) server.child.kill('SIGTERM')
  await server.ended
}

/** The answer to a JSON request: status and body. */
export const ask = async (
  url: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
) => {
  const response = await fetch(url + path, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(20_000),
  })
  return { status: response.status, body: (await response.json()) as any }
}

/** A developer, a ready project and a signed-in user, over HTTP. Sign-ups are limited per address: each project has one of its own. */
export const createTestProject = async (url: string) => {
  const from = { 'x-forwarded-for': freshIp() }
  const credentials = {
    email: `p${Date.now()}${Math.random()}@example.org`,
    password: 'correct horse 42 battery',
  }
  const signup = await ask(url, 'POST', '/v1/auth/developer/signup', credentials, from)
  const developer = { authorization: `Bearer ${signup.body.data.access_token}` }
  const made = await ask(url, 'POST', '/v1/admin/projects', { name: 'process' }, developer)
  const { id } = made.body.data.project
  for (let tries = 0; ; tries += 1) {
    const { body } = await ask(url, 'GET', `/v1/admin/projects/${id}/provisioning-status`, undefined, developer)
    if (body.data.status === 'ready') break
    if (tries > 300) throw new Error(`not ready: ${JSON.stringify(body)}`)
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
  const key = { 'x-api-key': made.body.data.api_keys.client.key as string }
  const signedIn = await ask(url, 'POST', '/v1/client/auth/anonymous', {}, { ...key, ...from })
  const user = { ...key, authorization: `Bearer ${signedIn.body.data.session_token}` }
  return {
    developer,
    projectId: id as string,
    key,
    user,
    userId: signedIn.body.data.user.id as string,
    serverKey: made.body.data.api_keys.server.key as string,
  }
}
