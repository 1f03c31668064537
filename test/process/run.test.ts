import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { root } from '#server/root.ts'
import { processesOf } from '#test/support/run.ts'

/** Runs of the suite that are ended from outside, or by themselves: no process and no folder is left. */
describe.each(['SIGINT', 'SIGKILL'] as const)('a run that gets %s while a server of a test works', (signal) => {
  test('leaves no process and no folder', { timeout: 180_000 }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'r-'))
    await chmod(folder, 0o711)
    const vitest = join(root, 'node_modules/vitest/vitest.mjs')
    const run = spawn(process.execPath, [vitest, 'run', 'test/process/start.test.ts', '-t', 'first start'], {
      cwd: root,
      // its own: neither the variables of this run nor its Postgres
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], TMPDIR: folder },
      stdio: 'ignore',
      detached: true,
    })
    const ended = once(run, 'exit')
    try {
      const living = async () => (await processesOf(folder)).map(({ command }) => command)
      const has = (found: readonly string[], word: string) => found.filter((command) => command.includes(word)).length
      for (let found = await living(); ; found = await living()) {
        // the server of the test and two of Postgres: the run's and the server's
        if (has(found, 'server/main.ts') > 0 && has(found, 'postgres -D') > 1) break
        expect(run.exitCode, 'it ended before it could be killed').toBeNull()
        await sleep(50)
      }
      // as Ctrl-C in a terminal does it, to the whole group
      process.kill(signal === 'SIGKILL' ? run.pid! : -run.pid!, signal)
      await ended
      await expect.poll(living, { timeout: 60_000, interval: 200 }).toEqual([])
      expect(await readdir(folder)).toEqual([])
    } finally {
      for (const { pid } of await processesOf(folder)) kill(pid)
      await rm(folder, { recursive: true, force: true })
    }
  })
})

const kill = (pid: number) => {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // it has ended just now
  }
}

test('a run whose keeper was killed too is cleared away by the keeper of a later one', {
  timeout: 180_000,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'trellis-run-'))
  const left = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', folder], { stdio: 'ignore' })
  const ended = once(left, 'exit')
  try {
    // as a later run starts it: without an input that could close
    const keeper = spawn(process.execPath, [join(root, 'test/support/keeper.ts'), folder], { stdio: 'ignore' })
    expect(await once(keeper, 'exit')).toEqual([0, null])
    expect(await ended).toEqual([null, 'SIGKILL'])
    expect(await readdir(tmpdir())).not.toContain(basename(folder))
  } finally {
    left.kill('SIGKILL')
    await rm(folder, { recursive: true, force: true })
  }
})

test('a program that ends without cleaning up leaves nothing', {
  timeout: 180_000,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'r-'))
  await chmod(folder, 0o711)
  const program = `
    import { startEmbeddedPostgres } from '${root}fleet/embedded/server.ts'
    import { temporaryFolder } from '${root}test/support/process.ts'
    const dataDir = await temporaryFolder()
    await startEmbeddedPostgres({ dataDir, superuserPassword: 'x', log: () => {}, sync: false })
    console.log('started')
    process.exit(0)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    cwd: root,
    env: { PATH: process.env['PATH'], TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let said = ''
  child.stdout.on('data', (chunk) => {
    said += chunk
  })
  await once(child, 'close')
  expect(said).toBe('started\n')
  await expect.poll(() => processesOf(folder), { timeout: 60_000 }).toEqual([])
  expect(await readdir(folder)).toEqual([])
  await rm(folder, { recursive: true, force: true })
})
