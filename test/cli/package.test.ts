import { mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { root } from '#server/root.ts'
import { execute, machine } from '#test/support/cli.ts'
import { endPrograms, temporaryFolder } from '#test/support/process.ts'
import { parse as parseArguments } from '../../cli/src/arguments.ts'
import { commands } from '../../cli/src/commands.ts'
import { configFolder } from '../../cli/src/credentials.ts'
import { protect, restore } from '../../cli/src/exact.ts'
import { exits } from '../../cli/src/exit.ts'

/** The package as it is published, what its documents say of it, and the completion of shells. */
const read = (file: string) => readFile(join(root, file), 'utf8')
const manifest = JSON.parse(await read('cli/package.json'))
afterAll(endPrograms)

describe('the packed tarball', () => {
  let folder = ''
  let files: string[] = []
  let tarball = ''
  const npm = (args: string[], cwd: string) =>
    execute('npm', args, {
      cwd,
      timeout: 120_000,
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: folder,
        npm_config_cache: join(folder, 'cache'),
        npm_config_update_notifier: 'false',
        npm_config_offline: 'true',
      },
    })

  beforeAll(async () => {
    folder = await temporaryFolder()
    // beside its sources, as others may be reading them
    const place = join(folder, 'cli')
    await mkdir(join(place, 'dist'), { recursive: true })
    for (const file of ['package.json', 'README.md', 'LICENSE']) {
      await writeFile(join(place, file), await read(`cli/${file}`))
    }
    await execute(process.execPath, [join(root, 'cli/build.js'), join(place, 'dist/trellis.js')])
    const { stdout } = await npm(['pack', '--json', '--ignore-scripts', '--pack-destination', folder], place)
    const printed = JSON.parse(stdout)
    const [about] = Array.isArray(printed) ? printed : Object.values<any>(printed)
    files = about.files.map(({ path }: { path: string }) => path)
    tarball = join(folder, about.filename)
  })

  test('has one program, no dependency and no script that an installation runs', async () => {
    expect(files.sort()).toEqual(['LICENSE', 'README.md', 'dist/trellis.js', 'package.json'])
    for (const kind of ['dependencies', 'peerDependencies', 'devDependencies', 'optionalDependencies']) {
      expect(manifest[kind], kind).toBeUndefined()
    }
    expect(Object.keys(manifest.scripts).sort()).toEqual(['build', 'prepack'])
    expect(manifest.version).toBe(JSON.parse(await read('package.json')).version)
  })

  test('runs under npx in an empty folder, without a network and without flags', async () => {
    const empty = join(folder, 'empty')
    await mkdir(empty)
    const { stdout } = await npm(['exec', '--yes', '--package', tarball, '--', 'trellis', '--version'], empty)
    expect(stdout).toBe(`${manifest.version}\n`)
  })

  test('is plain JavaScript: it runs within node_modules, and loads nothing but Node', async () => {
    const app = join(folder, 'app/node_modules/trellis-cli')
    await mkdir(join(app, '..'), { recursive: true })
    await symlink(join(folder, 'cli'), app)
    const file = join(app, 'dist/trellis.js')
    const text = await readFile(file, 'utf8')
    for (const [, name = ''] of text.matchAll(/^import .*?from "([^"]+)"/gm)) expect(name).toMatch(/^node:/)
    expect(text).not.toContain('/v1/client/')
    expect(gzipSync(text).length).toBeLessThan(40_000)
    const { run } = await machine(file)
    expect(await run(['--version'])).toMatchObject({ code: 0, stdout: `${manifest.version}\n` })
    expect(await run(['whoami', '--url', 'https://api.example.test'])).toMatchObject({ code: 3, stdout: '' })
    expect((await stat(file)).mode & 0o111).not.toBe(0)
  })
})

describe('documents', () => {
  const names = commands.map(({ name }) => name)
  const commandOf = (words: string[]) =>
    commands.find(({ name }) => name === words[0] || name === words.slice(0, 2).join(' '))

  test('docs/cli.md has every command, and the exit codes as they are', async () => {
    const text = await read('docs/cli.md')
    for (const name of names) expect(text).toContain(`\`${name}`)
    const listed = [...text.matchAll(/^\| (\d+) \| /gm)].map(([, code]) => Number(code))
    expect(listed).toEqual(Object.values(exits).sort((a, b) => a - b))
  })

  test.each(['docs/cli.md', 'docs/ci.md'])('the commands of %s exist, with their options', async (file) => {
    const lines = [...(await read(file)).matchAll(/(?:npx|^|\$) ?trellis ((?!<)[^#`|\n]*)/gm)].map(([, line = '']) =>
      line.trim(),
    )
    expect(lines.length).toBeGreaterThan(3)
    for (const line of lines) {
      const words = line.match(/"[^"]*"|'[^']*'|\S+/g) ?? []
      const command = commandOf(words)
      if (words[0] === 'help' || words[0] === 'on') continue
      expect(command, line).toBeDefined()
      const options = { ...command?.flags, url: { value: 'URL', about: '' }, project: { value: 'ID', about: '' } }
      const known = { ...options, json: { about: '' }, 'no-color': { about: '' } }
      expect(() => parseArguments(words, known), line).not.toThrow()
    }
  })

  test('the workflows of docs/ci.md are workflows: a plan on a pull request, a push on what is merged', async () => {
    const blocks = [...(await read('docs/ci.md')).matchAll(/```yaml\n(.*?)\n```\n/gs)].map(([, text = '']) =>
      parse(text),
    )
    expect(blocks.map(({ name }) => name)).toEqual(['trellis', 'trellis drift'])
    for (const { on, permissions, jobs } of blocks) {
      expect(permissions).toEqual({ contents: 'read' })
      expect(on).toBeTypeOf('object')
      for (const job of Object.values<any>(jobs)) {
        expect(job['runs-on']).toBe('ubuntu-latest')
        for (const step of job.steps) expect([step.uses, step.run].filter(Boolean)).toHaveLength(1)
        const [last] = job.steps.slice(-1)
        expect(Object.keys(last.env).sort()).toEqual(['TRELLIS_TOKEN', 'TRELLIS_URL'])
        // what a pull request says is never part of a script
        for (const { run = '' } of job.steps) expect(run).not.toContain('${{')
        await execute('sh', ['-n', '-c', last.run])
      }
    }
    const [main] = blocks
    expect(Object.keys(main.on)).toEqual(['pull_request', 'push'])
    expect(main.jobs.plan.steps.at(-1).run).toContain('npx trellis plan')
    expect(main.jobs.plan.if).toContain('fork')
    expect(main.jobs.push.steps.at(-1).run).toContain('npx trellis push --yes')
    expect(main.jobs.push).toMatchObject({ environment: 'production', concurrency: 'trellis' })
  })
})

test('credentials are in the place of the operating system', () => {
  const env = { HOME: '/home/ada', APPDATA: 'C:\\Users\\ada\\AppData\\Roaming' }
  expect(configFolder(env, 'linux')).toBe('/home/ada/.config/trellis')
  expect(configFolder({ ...env, XDG_CONFIG_HOME: '/cfg' }, 'linux')).toBe('/cfg/trellis')
  expect(configFolder({ ...env, XDG_CONFIG_HOME: 'relative' }, 'linux')).toBe('/home/ada/.config/trellis')
  expect(configFolder(env, 'darwin')).toBe('/home/ada/Library/Application Support/trellis')
  expect(configFolder(env, 'win32')).toContain('Roaming')
})

test('numbers that JavaScript would change keep their digits, and text stays text', () => {
  const text = '{"a":12345678901234567890,"b":1.10,"c":-0,"d":1e2,"e":[7,"8.0","\\"9.0"],"f":0.5}'
  expect(restore(JSON.stringify(JSON.parse(protect(text))))).toBe(text)
  expect(JSON.parse(protect(text)).e).toEqual([7, '8.0', '"9.0'])
})

describe('completion', () => {
  test('of bash completes commands, their options and their words', async () => {
    const { run } = await machine()
    const { stdout: script } = await run(['completion', 'bash'])
    const complete = async (...words: string[]) => {
      const line = `COMP_WORDS=(trellis ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}`
      const { stdout } = await execute('bash', [
        '-c',
        `${script}\n${line}; _trellis; printf '%s\\n' "\${COMPREPLY[@]}"`,
      ])
      return stdout.trim().split('\n')
    }
    expect(await complete('pu')).toEqual(['pull', 'push'])
    expect(await complete('events', '')).toEqual(['tail'])
    expect(await complete('events', 'tail', '--co')).toEqual(['--count'])
    expect(await complete('push', '--pr')).toEqual(['--prune', '--project'])
    expect(await complete('types', '--format', 'j')).toEqual(['json-schema'])
    expect(await complete('open', 'd')).toEqual(['docs', 'device'])
    expect(await complete('help', 'wh')).toEqual(['whoami'])
  })

  test.each(['bash', 'zsh', 'fish'])('of %s is a script that the shell reads', async (shell) => {
    const { folder, run } = await machine()
    const { code, stdout } = await run(['completion', shell])
    expect(code).toBe(0)
    for (const { name } of commands) expect(stdout).toContain(name.split(' ').at(-1))
    const file = join(folder, 'completion')
    await writeFile(file, stdout)
    const checked = await execute(shell, ['-n', file]).catch((error: NodeJS.ErrnoException) => error)
    // not every machine has every shell
    if ((checked as NodeJS.ErrnoException).code !== 'ENOENT') expect(checked).toMatchObject({ stderr: '' })
  })
})
