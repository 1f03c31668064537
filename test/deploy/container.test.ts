import { execFile, spawn } from 'node:child_process'
import { chmod, cp, mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, inject, test, vi } from 'vitest'
import { root } from '#server/root.ts'
import { freshEmail } from '#test/support/client.ts'
import { readDockerfile } from '#test/support/dockerfile.ts'
import { freePort } from '#test/support/process.ts'

/**
 * The container. Where a builder runs it is built and run; elsewhere the steps of the Dockerfile itself are run in an empty folder, and the program in
 * it as the Dockerfile says: as a user who may write nothing but DATA_DIR.
 */
vi.setConfig({ testTimeout: 600_000 })
const run = promisify(execFile)
const hasBuilder = await run('docker', ['info'], { timeout: 10_000 }).then(
  () => true,
  () => false,
)
const isNightly = process.env['TRELLIS_NIGHTLY'] === '1'
const file = join(root, 'deploy/Dockerfile')
const instructions = readDockerfile(await readFile(file, 'utf8'))
const of = (name: string, stage = 1) =>
  instructions.filter((one) => one.name === name && one.stage === stage).map(({ text }) => text)
const only = (name: string, stage = 1) => {
  const found = of(name, stage)
  expect(found, name).toHaveLength(1)
  return found[0] ?? ''
}

const folder = await mkdtemp(join(tmpdir(), 'trellis-image-'))
const prefix = `i${Date.now().toString(36)}`
const ends: (() => Promise<unknown>)[] = []
afterAll(async () => {
  for (const end of ends.reverse()) await end()
  await rm(folder, { recursive: true, force: true })
}, 120_000)

const environment = (port: number) => ({
  DATABASE_URL: inject('dsn'),
  DATABASE_PREFIX: prefix,
  SECRETS_KEY: inject('secretsKey'),
  HOST: '127.0.0.1',
  PORT: String(port),
  LOG_LEVEL: 'warn',
})

/** The steps of the build stage, in an empty folder. */
const buildByHand = async (): Promise<string> => {
  const app = join(folder, 'app')
  await mkdir(app)
  for (const { name, text } of instructions.filter(({ stage }) => stage === 0)) {
    if (name === 'COPY') {
      const words = text.split(/\s+/)
      const to = words.pop() ?? ''
      for (const from of words) {
        const target = to.endsWith('/') ? join(app, to, from) : join(app, to)
        await mkdir(dirname(target), { recursive: true })
        await cp(join(root, from), target, { recursive: true })
      }
    }
    if (name !== 'RUN') continue
    // a minute of the registry's time: at night; by day the packages that are installed here stand in for this one step
    if (text.startsWith('npm ci') && !isNightly) {
      await symlink(join(root, 'node_modules'), join(app, 'node_modules'))
      continue
    }
    if (/node_modules|^npm prune/.test(text) && !isNightly) continue
    await run('/bin/sh', ['-c', text], {
      cwd: app,
      env: { ...process.env, PATH: `${dirname(process.execPath)}:${process.env['PATH']}` },
    })
  }
  return app
}

const startByHand = async (app: string, port: number) => {
  const data = join(folder, 'data')
  await mkdir(data)
  const [uid = 0, gid = 0] = only('USER').split(':').map(Number)
  const isRoot = process.getuid?.() === 0
  await chmod(folder, 0o755)
  if (isRoot) await run('chown', [`${uid}:${gid}`, data])
  // what belongs to another user cannot be written
  if (isRoot) await run('chown', ['-Rh', '0:0', app])
  const [command = '', ...args] = JSON.parse(only('CMD')) as string[]
  const declared = Object.fromEntries(
    only('ENV')
      .split(/\s+/)
      .map((pair) => pair.split('=') as [string, string]),
  )
  const child = spawn(command === 'node' ? process.execPath : command, args, {
    cwd: app,
    env: { ...declared, PATH: process.env['PATH'], ...environment(port), DATA_DIR: data },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(isRoot ? { uid, gid } : {}),
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said += chunk))
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const stop = async () => {
    child.kill('SIGTERM')
    return ended
  }
  ends.push(stop)
  return { said: () => said, stop, ended }
}

const healthcheck = (port: number) => {
  const [command = '', ...args] = JSON.parse(only('HEALTHCHECK').replace(/^.*? CMD /, '')) as string[]
  return run(command === 'node' ? process.execPath : command, args, { env: { PORT: String(port) } }).then(
    () => 0,
    ({ code }: { code: number }) => code,
  )
}

const story = async (port: number) => {
  const url = `http://127.0.0.1:${port}`
  const answer = await fetch(`${url}/v1/auth/developer/signup`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: freshEmail(), password: 'a long passphrase' }),
  })
  expect(answer.status, await answer.clone().text()).toBe(201)
}

test('is not root, has a health check, and takes SIGTERM', () => {
  expect(only('USER')).toMatch(/^[1-9]\d*:[1-9]\d*$/)
  expect(only('STOPSIGNAL')).toBe('SIGTERM')
  expect(only('HEALTHCHECK')).toContain('/health')
  // the process gets the signal itself, and no shell between
  expect(JSON.parse(only('CMD'))).toEqual(['node', 'server/main.ts'])
  for (const { name, text } of instructions) if (name === 'COPY') expect(text).not.toMatch(/(^|\s)\.(\s|$)(?!\/)/)
})

test.runIf(!hasBuilder)('its steps make a program that serves as another user and writes DATA_DIR alone', async () => {
  const app = await buildByHand()
  const port = await freePort()
  expect(await healthcheck(port)).toBe(1)
  const server = await startByHand(app, port)
  await expect
    .poll(async () => [await healthcheck(port), server.said()].join(' '), { timeout: 240_000, interval: 500 })
    .toMatch(/^0/)
  await story(port)
  expect(await server.stop(), server.said()).toBe(0)
  const written = await run('find', [
    app,
    '-newer',
    join(folder, 'data'),
    '-type',
    'f',
    '-user',
    only('USER').split(':')[0] ?? '',
  ])
  expect(written.stdout).toBe('')
})

test.runIf(hasBuilder)('is built, small, and serves with a read-only root file system', async () => {
  const image = `trellis-test-${prefix}`
  await run('docker', ['build', '-q', '-f', file, '-t', image, root], { maxBuffer: 1e8 })
  ends.push(() => run('docker', ['image', 'rm', '-f', image]))
  const { stdout: size } = await run('docker', ['image', 'inspect', '-f', '{{.Size}}', image])
  expect(Number(size)).toBeLessThan(450e6)
  const port = await freePort()
  const env = Object.entries(environment(port)).flatMap(([name, value]) => ['-e', `${name}=${value}`])
  const hardened = ['--read-only', '--tmpfs', '/tmp', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges']
  const { stdout: id } = await run('docker', ['run', '-d', '--network', 'host', ...hardened, ...env, image])
  ends.push(() => run('docker', ['rm', '-f', id.trim()]))
  await expect.poll(() => healthcheck(port), { timeout: 240_000, interval: 500 }).toBe(0)
  await story(port)
  const { stdout: user } = await run('docker', ['exec', id.trim(), 'id', '-u'])
  expect(user.trim()).toBe('1000')
})
