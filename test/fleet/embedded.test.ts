import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, cp, lstat, mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { binariesIn, identity, installedBinaries, systemUser, usableBinaries } from '#fleet/embedded/binaries.ts'
import { explained, sharedBuffers } from '#fleet/embedded/folder.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '#fleet/embedded/server.ts'
import { runScript } from '#test/support/admin.ts'
import { createTestProject, endPrograms, endServer, startServer, temporaryFolder } from '#test/support/process.ts'
import { versionFinding } from '../../scripts/admin/doctor/databases.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

const isRoot = process.getuid?.() === 0
const password = 'a pass/word:with@signs'
const said: string[] = []
const log = (message: string) => said.push(message)
const debian = '/usr/lib/postgresql/15'
const started: EmbeddedPostgres[] = []
const children: ChildProcess[] = []
const removals: string[] = []
let base: string

beforeAll(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), 'tp-')))
  // mkdtemp's 700 would be a private folder to the user that root runs Postgres as
  await chmod(base, 0o711)
})

afterAll(endPrograms, 60_000)
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  for (const server of started) await server.stop()
  for (const folder of [base, ...removals]) await rm(folder, { recursive: true, force: true })
})

const start = async (dataDir: string, superuserPassword = password) => {
  const server = await startEmbeddedPostgres({ dataDir, superuserPassword, log, sync: false })
  started.push(server)
  return server
}

const query = async (server: { url: string }, sql: string) => {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

/** Another process of ours, in a process group of its own as a terminal would give it. */
const startElsewhere = (dataDir: string) => {
  const program = `
    import { startEmbeddedPostgres } from '${new URL('../../fleet/embedded/server.ts', import.meta.url)}'
    const options = { dataDir: process.argv[1], superuserPassword: process.argv[2], log: () => {}, sync: false }
    console.log(JSON.stringify(await startEmbeddedPostgres(options)))
    setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, dataDir, password], {
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  return child
}

const answerOf = async (child: ChildProcess): Promise<{ url: string; pid: number; port: number }> => {
  const [line] = await once(createInterface({ input: child.stdout! }), 'line')
  return JSON.parse(line)
}

const killed = async (child: ChildProcess, pid: number, signal: NodeJS.Signals) => {
  process.kill(pid, signal)
  await once(child, 'exit')
}

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const isThere = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )

describe('a start', () => {
  test('makes a cluster that knows Unicode, and the next one finds its data and its port again', async () => {
    const dataDir = join(base, 'new')
    const cold = await start(dataDir)
    await query(cold, "create table kept as select 'ÀÉ ΑΒΓ'::text as word")
    const socket = { url: `${cold.url}&host=${encodeURIComponent(cold.socketDirectory!)}` }
    expect(await query(socket, 'select inet_client_addr()')).toEqual([{ inet_client_addr: null }])
    await cold.stop()
    await expect.poll(() => isAlive(cold.pid)).toBe(false)
    const warm = await start(dataDir)
    expect(await query(warm, 'select lower(word) from kept')).toEqual([{ lower: 'àé αβγ' }])
    expect(warm.port).toBe(cold.port)
    expect(warm.pid).not.toBe(cold.pid)
    await warm.stop()
  })

  test('configures the server: checksums, UTC, UTF-8, 200 connections, nothing of a parameter in the log', async () => {
    const server = await start(join(base, 'new'))
    const rows = await query(
      server,
      `select name, setting from pg_settings where name in ('data_checksums', 'TimeZone', 'server_encoding', 'listen_addresses',
       'max_connections', 'password_encryption', 'log_parameter_max_length', 'log_parameter_max_length_on_error')`,
    )
    expect(Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))).toEqual({
      data_checksums: 'on',
      TimeZone: 'UTC',
      server_encoding: 'UTF8',
      listen_addresses: '127.0.0.1',
      max_connections: '200',
      password_encryption: 'scram-sha-256',
      log_parameter_max_length: '0',
      log_parameter_max_length_on_error: '0',
    })
    await server.stop()
  })

  test.each([
    ['an eighth of the machine', 8, 0, 1024],
    ['an eighth of a control group', 64, 4, 512],
    ['of the machine, where a group has no limit of its own', 8, 2 ** 40, 1024],
    ['at least 128 MB', 0.5, 0, 128],
    ['at most 2 GB', 64, 0, 2048],
  ])('shares memory for buffers: %s', (_what, machine, group, megabytes) => {
    expect(sharedBuffers(machine * 2 ** 30, group * 2 ** 30)).toBe(megabytes)
  })

  test('leaves the password nowhere, and lets what the administrator sets win', async () => {
    const dataDir = join(base, 'new')
    const server = await start(dataDir)
    await query(server, "alter system set autovacuum_naptime = '7min'")
    await server.stop()
    const again = await start(dataDir)
    expect(await query(again, 'show autovacuum_naptime')).toEqual([{ autovacuum_naptime: '7min' }])
    expect((await readdir(dataDir)).filter((name) => name.startsWith('draft-'))).toEqual([])
    for (const file of ['postgres.log', 'postgres.conf', 'cluster/postmaster.opts']) {
      expect(await readFile(join(dataDir, file), 'utf8')).not.toContain(password)
    }
    expect(said.join('\n')).not.toContain(password)
    await again.stop()
  })

  test('runs Postgres as another user when we are root, else as ourselves', async () => {
    const server = await start(join(base, 'new'))
    const { uid } = await stat(join(server.socketDirectory!, `.s.PGSQL.${server.port}`))
    expect(uid).toBe(isRoot ? (await systemUser())!.uid : process.getuid?.())
    await server.stop()
  })

  test('takes another port when the last one is in use', async () => {
    const first = await start(join(base, 'new'))
    const other = join(base, 'other')
    await mkdir(other, { mode: 0o711 })
    await writeFile(join(other, 'port'), `${first.port}\n`)
    const second = await start(other)
    expect(second.port).not.toBe(first.port)
    await second.stop()
  })

  test('bounds the log', async () => {
    const dataDir = join(base, 'other')
    await writeFile(join(dataDir, 'postgres.log'), 'x'.repeat(17 * 1024 * 1024))
    const server = await start(dataDir)
    expect((await stat(join(dataDir, 'postgres.log'))).size).toBeLessThan(10_000)
    expect((await stat(join(dataDir, 'postgres.log.1'))).size).toBe(17 * 1024 * 1024)
    await server.stop()
  })

  test('has no socket under a path too long for one, and works by TCP', async () => {
    const server = await start(join(base, 'l'.repeat(90), 'with spaces, and a comma'))
    expect(server.socketDirectory).toBeNull()
    expect(await query(server, 'select 1 as one')).toEqual([{ one: 1 }])
    await server.stop()
  })

  test('reaches its data under a private folder', async () => {
    const parent = join(base, 'private')
    const dataDir = join(parent, 'data')
    await mkdir(dataDir, { recursive: true })
    await chmod(parent, 0o700)
    const server = await start(dataDir)
    const home = dirname(server.socketDirectory!)
    if (!isRoot) return expect(home).toBe(dataDir)
    removals.push(home)
    expect(home).toMatch(/^\/var\/lib\/trellis\/[0-9a-f]{16}$/)
    expect(said.join('\n')).toContain(`cannot reach ${dataDir}: its data are in ${home}`)
    await query(server, 'create table kept ()')
    await server.stop()
    // opened afterwards, the folder must not seem to have lost its data
    await chmod(parent, 0o711)
    expect(await query(await start(dataDir), 'table kept')).toEqual([])
  })

  test('refuses a cluster that its user can no longer reach, rather than make an empty one', async () => {
    const parent = join(base, 'closed')
    const server = await start(join(parent, 'data'))
    await server.stop()
    await chmod(parent, isRoot ? 0o700 : 0o711)
    if (!isRoot) await chmod(join(parent, 'data'), 0o500)
    await expect(start(join(parent, 'data'))).rejects.toThrow(isRoot ? /chmod o\+x/ : /may not write in/)
    await chmod(join(parent, 'data'), 0o711)
  })
})

describe('a Postgres that runs already', () => {
  test('outlives a server killed with -9, and is adopted', async () => {
    const dataDir = join(base, 'killed')
    const child = startElsewhere(dataDir)
    const before = await answerOf(child)
    await query(before, 'create table kept ()')
    await killed(child, child.pid!, 'SIGKILL')
    const adopted = await start(dataDir)
    expect([adopted.pid, adopted.port]).toEqual([before.pid, before.port])
    expect(adopted.socketDirectory).toBe(join(dataDir, 'socket'))
    expect(await query(adopted, 'table kept')).toEqual([])
    await adopted.stop()
    await expect(query(adopted, 'table kept')).rejects.toThrow(/ECONNREFUSED/)
    expect(await isThere(join(dataDir, 'cluster/postmaster.pid'))).toBe(false)
  })

  test('does not hear the Ctrl-C that ends our process group', async () => {
    const dataDir = join(base, 'killed')
    const child = startElsewhere(dataDir)
    const { pid } = await answerOf(child)
    await killed(child, -child.pid!, 'SIGINT')
    await sleep(200)
    const adopted = await start(dataDir)
    expect(adopted.pid).toBe(pid)
    await adopted.stop()
  })

  test('is one and the same for servers that start at once', async () => {
    for (const dataDir of [join(base, 'at once'), join(base, 'at once'), join(base, 'once more')]) {
      const others = [startElsewhere(dataDir), startElsewhere(dataDir), startElsewhere(dataDir)]
      const answers = await Promise.all([start(dataDir), start(dataDir), ...others.map(answerOf)])
      expect(new Set(answers.map(({ pid, port }) => `${pid} ${port}`)).size).toBe(1)
      for (const other of others) await killed(other, other.pid!, 'SIGKILL')
      await Promise.all(started.slice(-2).map((server) => server.stop()))
      expect(await isThere(join(dataDir, 'cluster/postmaster.pid'))).toBe(false)
    }
  })

  test('is not adopted while it shuts down', async () => {
    const dataDir = join(base, 'at once')
    const first = await start(dataDir)
    const [, second] = await Promise.all([first.stop(), start(dataDir)])
    expect(await query(second, 'select 1 as one')).toEqual([{ one: 1 }])
    await second.stop()
  })

  test('is stopped by the last of those who use it, however the others ended', async () => {
    const dataDir = join(base, 'at once')
    const child = startElsewhere(dataDir)
    const { pid } = await answerOf(child)
    const [one, two] = [await start(dataDir), await start(dataDir)]
    await one.stop()
    expect(await query(two, 'select 1 as one')).toEqual([{ one: 1 }])
    await two.stop()
    const three = await start(dataDir)
    expect(three.pid).toBe(pid)
    await killed(child, child.pid!, 'SIGKILL')
    await three.stop()
    await expect(query(three, 'select 1')).rejects.toThrow(/ECONNREFUSED/)
  })

  test('refuses another password, and is left running where others use it', async () => {
    const dataDir = join(base, 'at once')
    const server = await start(dataDir)
    await expect(start(dataDir, 'another')).rejects.toThrow(/SECRETS_KEY that this data was made with/)
    expect(isAlive(server.pid)).toBe(true)
    await server.stop()
    await expect(start(dataDir, 'another')).rejects.toThrow(/SECRETS_KEY/)
    expect(await isThere(join(dataDir, 'cluster/postmaster.pid'))).toBe(false)
  })
})

describe('what a crash leaves behind', () => {
  test('a killed postmaster, with a connection still open, is started again', async () => {
    const dataDir = join(base, 'crash')
    const server = await start(dataDir)
    const client = new pg.Client({ connectionString: server.url })
    client.on('error', () => undefined)
    await client.connect()
    await client.query('create table kept ()')
    const sleeping = client.query('select pg_sleep(60)').catch(() => undefined)
    process.kill(server.pid, 'SIGKILL')
    const again = await start(dataDir)
    expect(again.pid).not.toBe(server.pid)
    expect(await query(again, 'table kept')).toEqual([])
    await sleeping
    await again.stop()
    expect(await query(again, 'table kept')).toEqual([])
    // the last to leave stops the Postgres that took the place of its own
    await server.stop()
    await expect(query(again, 'table kept')).rejects.toThrow(/ECONNREFUSED/)
  })

  test('a Postgres that recovers from the crash of one of its connections is waited for', async () => {
    const dataDir = join(base, 'crash')
    const server = await start(dataDir)
    const client = new pg.Client({ connectionString: server.url })
    client.on('error', () => undefined)
    await client.connect()
    const { rows } = await client.query('select pg_backend_pid() as pid')
    const ended = new Promise((resolve) => client.once('end', resolve))
    process.kill(rows[0].pid, 'SIGKILL')
    await ended
    const again = await start(dataDir)
    expect(again.pid).toBe(server.pid)
    expect(await query(again, 'select 1 as one')).toEqual([{ one: 1 }])
    await again.stop()
    await server.stop()
  })

  test('the pid of a process that is gone, or that is another program now, does not hinder', async () => {
    const dataDir = join(base, 'crash')
    const server = await start(dataDir)
    const pidFile = join(dataDir, 'cluster/postmaster.pid')
    const note = await readFile(pidFile, 'utf8')
    const { uid, gid } = await stat(pidFile)
    await server.stop()
    // as Postgres's own user: it takes a process of another user for a stranger by itself
    const stranger = spawn('/bin/sleep', ['60'], isRoot ? { uid, gid, cwd: '/' } : { cwd: '/' })
    children.push(stranger)
    for (const pid of [server.pid, stranger.pid]) {
      await writeFile(pidFile, note.replace(/^\d+/, `${pid}`))
      const again = await start(dataDir)
      expect(await query(again, 'select 1 as one')).toEqual([{ one: 1 }])
      await again.stop()
    }
    expect(isAlive(stranger.pid!)).toBe(true)
  })

  test('an initdb killed in the middle does not hinder', async () => {
    const dataDir = join(base, 'interrupted')
    const child = startElsewhere(dataDir)
    const drafts = async () => (await readdir(dataDir).catch(() => [])).filter((name) => name.startsWith('draft-'))
    const isHalfMade = async () => {
      for (const name of await drafts()) if (await isThere(join(dataDir, name, 'cluster/base'))) return true
      return false
    }
    while (!(await isHalfMade())) await sleep(2)
    await killed(child, -child.pid!, 'SIGKILL')
    expect(await isThere(join(dataDir, 'cluster'))).toBe(false)
    expect(await drafts()).toHaveLength(1)
    const server = await start(dataDir)
    expect(await query(server, 'select 1 as one')).toEqual([{ one: 1 }])
    expect(await drafts()).toEqual([])
    await server.stop()
  })
})

describe('a plain sentence', () => {
  test('for data of another major version', async () => {
    const dataDir = join(base, 'version')
    await (await start(dataDir)).stop()
    await writeFile(join(dataDir, 'cluster/PG_VERSION'), '15\n')
    await expect(start(dataDir)).rejects.toThrow(/made by Postgres 15 and this is Postgres 18: run npm run db:upgrade/)
  })

  test('for a platform without binaries', async () => {
    await expect(installedBinaries('plan9', 'mips')).rejects.toThrow(/plan9-mips is not installed: run "npm install"/)
  })

  test('for a full disk', async () => {
    for (const line of [
      'could not write: No space left on device',
      'could not extend: wrote only 4096 of 8192 bytes',
    ]) {
      const { message } = explained(`FATAL:  ${line}\nPANIC:  cannot abort`, '/data')
      expect(message).toBe('The disk that holds /data is full: free some space, and start Trellis again.')
    }
    if (!isRoot) return
    const disk = join(base, 'disk')
    await mkdir(disk, { mode: 0o711 })
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=20m,mode=711', 'tmpfs', disk], { stdio: 'pipe' })
    } catch {
      // a root that may not mount, as in a container
      return
    }
    try {
      await expect(start(join(disk, 'data'))).rejects.toThrow(`The disk that holds ${disk}/data is full`)
      execFileSync('mount', ['-o', 'remount,size=200m', disk])
      await (await start(join(disk, 'data'))).stop()
      await writeFile(join(disk, 'filler'), Buffer.alloc(199 * 1024 * 1024)).catch(() => undefined)
      await expect(start(join(disk, 'data'))).rejects.toThrow(`The disk that holds ${disk}/data is full`)
    } finally {
      execFileSync('umount', [disk])
    }
  })

  test('for any other failure: what Postgres said, and where to read on', async () => {
    const dataDir = join(base, 'broken')
    await (await start(dataDir)).stop()
    await writeFile(join(dataDir, 'cluster/postgresql.auto.conf'), 'no_such_setting = 1\n')
    await expect(start(dataDir)).rejects.toThrow(
      /^Postgres did not start \(.*FATAL: .*auto\.conf.*\): see .*postgres\.log\.$/,
    )
  })
})

describe('POSTGRES_BIN', () => {
  test('names a folder with a Postgres that runs', async () => {
    await expect(installedBinaries('linux', 'x64', '/nowhere')).rejects.toThrow(
      'POSTGRES_BIN is /nowhere, and there is no bin/postgres that runs: name the folder of an installed Postgres, such as /usr/lib/postgresql/18.',
    )
    // any program that says its version as Postgres does
    const folder = join(base, 'system')
    await mkdir(join(folder, 'bin'), { recursive: true })
    await writeFile(join(folder, 'bin/postgres'), '#!/bin/sh\necho "postgres (PostgreSQL) 17.4 (Debian 17.4-1)"\n', {
      mode: 0o755,
    })
    const found = { folder, version: '17.4', isOfSystem: true }
    expect(await installedBinaries('plan9', 'mips', folder)).toEqual(found)
    expect(await installedBinaries('plan9', 'mips', join(folder, 'bin'))).toEqual(found)
    expect(await binariesIn(folder)).toEqual(found)
    // nothing is linked or copied: the system's libraries are its own
    expect(await usableBinaries(found, { home: base, runsAs: null }, log)).toBe(found)
    await expect(binariesIn(base)).rejects.toThrow(/no package of embedded Postgres, .* no Postgres of the system/)
  })

  test.runIf(isRoot)('is refused where its user may not run it', async () => {
    const folder = join(base, 'private')
    await mkdir(join(folder, 'bin'), { recursive: true, mode: 0o700 })
    const found = { folder, version: '17.4', isOfSystem: true }
    await expect(usableBinaries(found, { home: base, runsAs: await systemUser() }, log)).rejects.toThrow(
      /may not run .*bin\/postgres, which POSTGRES_BIN names/,
    )
  })

  test.runIf(existsSync(join(debian, 'bin/postgres')))(
    'runs the whole installation on the Postgres 15 of Debian, with its backup and its upgrade to 18',
    { timeout: 240_000 },
    async () => {
      const folder = await temporaryFolder()
      const env = {
        POSTGRES_BIN: debian,
        DATA_DIR: join(folder, 'data'),
        SECRETS_KEY: randomBytes(32).toString('base64'),
      }
      const server = await startServer(env)
      expect(server.child.exitCode, server.output()).toBe(null)
      const project = await createTestProject(server.url)
      const doctor = await runScript('scripts/admin.ts', ['doctor'], env)
      expect(doctor.out).toMatch(/version of Postgres: 15\./)
      expect(doctor.out).not.toMatch(/^FAILED/m)
      await endServer(server)

      const backup = join(folder, 'backup')
      expect(await runScript('scripts/backup.ts', ['--to', backup], env)).toMatchObject({ code: 0 })
      const restored = { ...env, DATA_DIR: join(folder, 'restored') }
      expect(await runScript('scripts/restore.ts', ['--from', backup], restored)).toMatchObject({ code: 0 })

      const { POSTGRES_BIN: _, ...onNpm } = restored
      const upgraded = await runScript('scripts/database.ts', ['upgrade', '--from', debian], onNpm)
      expect(upgraded, upgraded.err).toMatchObject({ code: 0 })
      expect(upgraded.out).toMatch(/upgraded from Postgres 15 to 18: 1 projects, every table compared/)
      const next = await startServer(onNpm)
      expect(next.child.exitCode, next.output()).toBe(null)
      const answer = await fetch(`${next.url}/v1/client/config`, { headers: { 'x-api-key': project.key['x-api-key'] } })
      expect(answer.status).toBe(200)
    },
  )

  test.each([
    [{ major: 14, version: '14.9' }, {}, 'failed', '14.9'],
    [{ major: 19, version: '19.0' }, { POSTGRES_BIN: '/usr' }, 'warning', '19.0'],
    [
      { major: 18, version: '18.4' },
      {},
      'ok',
      '18.4, of npm: for trying, and for one machine. 18.6 has security fixes: ',
    ],
    [{ major: 18, version: '18.4' }, { DATABASE_URL: 'postgres://x' }, 'warning', '18.4'],
    [{ major: 18, version: '18.6 (Debian 18.6-1)' }, { POSTGRES_BIN: '/usr' }, 'ok', '18.6 (Debian 18.6-1)'],
  ] as const)('or its absence is told by the doctor: %j with %j', (server, config, state, found) => {
    const finding = versionFinding(server, config)
    expect(finding).toMatchObject({ state, found: expect.stringMatching(`^${found.replace(/[()]/g, '.')}`) })
  })
})

describe('binaries', () => {
  test('are copied from where they cannot run or be linked, once, and run only from a folder that is ours', async () => {
    const installed = await installedBinaries(process.platform, process.arch)
    const packed = { folder: join(base, 'package/native'), version: installed.version }
    // as npm unpacks it, before anybody made the links
    const filter = async (path: string) => !(await lstat(path)).isSymbolicLink()
    await cp(installed.folder, packed.folder, { recursive: true, filter })
    // root's private folder stops the other user; a folder that cannot be written stops an ordinary one
    await (isRoot ? chmod(dirname(packed.folder), 0o700) : chmod(join(packed.folder, 'lib'), 0o500))
    const place = { home: join(base, 'copies'), runsAs: isRoot ? await systemUser() : null }
    await mkdir(place.home, { mode: 0o711 })
    const copy = await usableBinaries(packed, place, log)
    expect(await usableBinaries(packed, place, log)).toEqual(copy)
    expect(copy.folder).toBe(join(place.home, `binaries-${installed.version}`))
    expect(said.filter((message) => message.includes(`cannot run from ${packed.folder}`))).toHaveLength(1)
    const how = { ...identity(place.runsAs), cwd: '/' }
    expect(execFileSync(join(copy.folder, 'bin/postgres'), ['--version'], how).toString()).toMatch(/PostgreSQL\) 18/)
    await chmod(copy.folder, 0o777)
    await expect(usableBinaries(packed, place, log)).rejects.toThrow(/can be changed by one/)
    await chmod(join(packed.folder, 'lib'), 0o755)
  })

  test('are linked by several processes at once', async () => {
    const installed = await installedBinaries(process.platform, process.arch)
    const packed = { folder: join(base, 'linked/native'), version: installed.version }
    const filter = async (path: string) => !(await lstat(path)).isSymbolicLink()
    await cp(installed.folder, packed.folder, { recursive: true, filter })
    const place = { home: base, runsAs: null }
    const uses = await Promise.all([1, 2, 3, 4].map(() => usableBinaries(packed, place, log)))
    expect(uses).toEqual([packed, packed, packed, packed])
    expect(execFileSync(join(packed.folder, 'bin/postgres'), ['--version']).toString()).toMatch(/PostgreSQL\) 18/)
  })
})
