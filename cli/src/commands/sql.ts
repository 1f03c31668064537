import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { plain } from '../../../server/plain.ts'
import type { Command, Context } from '../command.ts'
import { CliError, exits, usageError } from '../exit.ts'
import { projectFor } from '../settings.ts'

type Result = {
  readonly command: string
  readonly rowCount: number | null
  readonly fields: readonly { readonly name: string }[]
  readonly rows: readonly (readonly unknown[])[]
}
type Client = {
  connect(): Promise<void>
  query(query: string | object): Promise<Result | Result[]>
  end(): Promise<void>
}
type Driver = { readonly Client: new (options: object) => Client }

/** The folder of the server's own sources: named, or the one that this folder is in. */
const installationOf = async ({ cwd, env, option }: Context): Promise<string> => {
  const named = option('installation') ?? (env['TRELLIS_INSTALLATION'] || undefined)
  for (let folder = resolve(cwd, named ?? '.'); ; folder = dirname(folder)) {
    const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => '{}')
    const { name, scripts } = JSON.parse(text) as { name?: string; scripts?: Record<string, string> }
    if (name === 'trellis' && scripts?.['db:url']) return folder
    if (named || dirname(folder) === folder) break
  }
  throw usageError(
    named
      ? `${resolve(cwd, named)} is no installation of Trellis.`
      : 'trellis sql works beside a server: in its folder, or with --installation.',
    'It asks the database itself, with the rights of the machine; there is no such route.',
  )
}

/** Where the project's database is, as the installation knows. The address has a password: it is neither printed nor an argument of a program. */
const addressOf = async ({ terminal, env }: Context, installation: string, projectId: string): Promise<string> => {
  const args = ['run', '--silent', 'db:url', '--', projectId]
  try {
    // npm is a script of the shell on Windows; the id is a uuid
    const options = { cwd: installation, env: { ...env } as NodeJS.ProcessEnv, shell: process.platform === 'win32' }
    const { stdout } = await promisify(execFile)('npm', args, options)
    const url = stdout.trim().split('\n').at(-1) ?? ''
    const { password } = new URL(url)
    terminal.hide(url)
    terminal.hide(password)
    terminal.hide(decodeURIComponent(password))
    return url
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string }
    throw new CliError(
      'NO_DATABASE',
      exits.notFound,
      plain(stderr.trim() || message),
      'Is the server of this folder running?',
    )
  }
}

const textOf = async ({ args, cwd, option }: Context): Promise<string> => {
  const file = option('file')
  const [word] = args
  if ((file === undefined) === (word === undefined)) throw usageError('Say the query, or --file.')
  if (file !== undefined) return readFile(resolve(cwd, file), 'utf8')
  if (word !== '-') return word ?? ''
  let text = ''
  for await (const chunk of process.stdin) text += String(chunk)
  return text
}

/** Values as Postgres writes them: no number and no time loses a digit. */
const asText = { getTypeParser: () => (value: unknown) => value }

export const sql: Command = {
  name: 'sql',
  summary: 'Query the database of a project of your own installation',
  about:
    'One statement that reads; --write lets statements write, all of them or none. For who runs the server, on its machine.',
  takes: [{ name: 'QUERY', about: 'SQL, or - for stdin' }],
  flags: {
    file: { value: 'FILE', short: 'f', isFile: true, about: 'Read the query from a file' },
    write: { about: 'Allow to write' },
    installation: {
      value: 'FOLDER',
      isFile: true,
      about: 'Where the server is; else TRELLIS_INSTALLATION, this folder',
    },
  },
  async run(context) {
    const { terminal } = context
    const text = await textOf(context)
    const installation = await installationOf(context)
    const connectionString = await addressOf(context, installation, await projectFor(context))
    // the installation has a driver: this package needs none
    const { Client } = createRequire(join(installation, 'package.json'))('pg') as Driver
    const client = new Client({ connectionString, application_name: 'trellis sql' })
    try {
      await client.connect()
      const isWriting = context.has('write')
      if (!isWriting) await client.query('set default_transaction_read_only = on')
      // one statement cannot end the transaction that protects it
      const mode = isWriting ? {} : { queryMode: 'extended' }
      const answers = await client.query({ text, rowMode: 'array', types: asText, ...mode })
      const results = Array.isArray(answers) ? answers : [answers]
      const rowsOf = ({ fields, rows }: Result) =>
        rows.map((row) => Object.fromEntries(fields.map(({ name }, index) => [name, row[index]])))
      terminal.answer(
        results.map((one) => ({ command: one.command, count: one.rowCount, rows: rowsOf(one) })),
        () => {
          for (const { command, rowCount, fields, rows } of results) {
            if (fields.length > 0) {
              const cells = rows.map((row) => row.map((value) => (value === null ? 'null' : plain(value))))
              terminal.table([fields.map(({ name }) => plain(name)), ...cells])
            }
            terminal.say(`${command} ${rowCount ?? 0}`)
          }
        },
      )
      return exits.done
    } catch (error) {
      const { code, message } = error as Error & { code?: string }
      // five letters and digits are a refusal of Postgres
      if (!/^[0-9A-Z]{5}$/.test(code ?? '')) throw error
      const hint = code === '25006' ? 'Say --write if it may write.' : undefined
      throw new CliError(`SQLSTATE ${code}`, exits.failed, message, hint)
    } finally {
      await client.end().catch(() => undefined)
    }
  },
}
