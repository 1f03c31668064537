import { isRefusal, isTemporary, TrellisError } from '../../sdk/src/index.ts'
import { plain } from '../../server/plain.ts'
import { checkWords, flagsOf, parse } from './arguments.ts'
import type { Command } from './command.ts'
import { globalFlags } from './command.ts'
import { commands } from './commands.ts'
import { CliError, exits, usageError } from './exit.ts'
import { showHelp, showHelpOf } from './help.ts'
import { didYouMean } from './similar.ts'
import { createTerminal, json, type Streams, type Terminal } from './terminal.ts'
import { version } from './version.ts'

export type World = Streams & {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
}

/** The command that the first words name, and how many words these are. */
const find = (words: readonly string[]): { command: Command; used: number } => {
  const [first = '', second = ''] = words
  const one = commands.find(({ name }) => name === first)
  if (one) return { command: one, used: 1 }
  const two = commands.find(({ name }) => name === `${first} ${second}`)
  if (two) return { command: two, used: 2 }
  const names = commands.map(({ name }) => name)
  const parts = names.filter((name) => name.startsWith(`${first} `))
  if (parts.length > 0) {
    const known = parts.map((name) => name.slice(first.length + 1))
    throw usageError(
      second ? `There is no command "${first} ${plain(second)}".` : `Say which: trellis ${parts.join(', trellis ')}.`,
      second ? (didYouMean(second, known) ?? `There is: trellis ${parts.join(', trellis ')}.`) : undefined,
    )
  }
  const meant = didYouMean(`${first} ${second}`.trim(), names) ?? didYouMean(first, [...names, 'help'])
  throw usageError(`There is no command "${plain(first)}".`, meant ?? 'trellis help lists the commands.')
}

const exitOf = (error: TrellisError): number => {
  if (error.status === 401) return exits.notSignedIn
  if (error.status === 403) return exits.forbidden
  if (error.status === 404) return exits.notFound
  if (error.status === 409) return exits.conflict
  return isTemporary(error) ? exits.unreachable : exits.failed
}

const hintOf = (error: TrellisError): string | undefined => {
  if (error.status === 401) return 'Sign in with trellis login, or set TRELLIS_TOKEN.'
  if (isRefusal(error, 'PLAN_CHANGED'))
    return 'Something has changed since the plan: look at a new one with trellis plan.'
  if (isRefusal(error, 'SCOPE_REQUIRED')) return 'The token needs a wider scope: make another one.'
  if (error.code === 'UNEXPECTED_ANSWER') return 'Is this the address of a Trellis server?'
  return undefined
}

type Failure = {
  code: string
  exit: number
  message: string
  hint?: string | undefined
  more?: Record<string, unknown>
  problems?: readonly string[]
}

const failureOf = (error: unknown, isVerbose: boolean): Failure => {
  if (error instanceof CliError) return error
  if (error instanceof TrellisError) {
    const { code, message, details, requestId } = error
    const more = { ...(details ? { details } : {}), ...(requestId ? { request_id: requestId } : {}) }
    return { code, message, exit: exitOf(error), hint: hintOf(error), more }
  }
  const { message, stack, code } = error as Error & { code?: string }
  // what the operating system refuses is no fault of the program: its sentence says enough
  const isOfSystem = typeof code === 'string'
  return { code: code ?? 'UNEXPECTED', message: isVerbose && !isOfSystem ? String(stack) : message, exit: exits.failed }
}

const fail = (terminal: Terminal, error: unknown, isVerbose: boolean): number => {
  const { code, exit, message, hint, more = {}, problems = [] } = failureOf(error, isVerbose)
  if (terminal.isJson) {
    terminal.say(
      json({
        error: {
          code,
          message,
          ...more,
          ...(problems.length > 0 ? { details: { problems } } : {}),
          ...(hint ? { hint } : {}),
          exit_code: exit,
        },
      }),
    )
    return exit
  }
  const text = isVerbose ? message : plain(message)
  terminal.say(`trellis: ${text}${code === 'USAGE' || code === 'UNEXPECTED' ? '' : ` (${plain(code)})`}`)
  for (const problem of problems) terminal.say(`  ${plain(problem)}`)
  const { details, request_id } = more
  if (details) terminal.say(`  ${json(details)}`)
  if (request_id && exit === exits.failed) terminal.say(`  request ${plain(request_id)}`)
  if (hint) terminal.say(plain(hint))
  return exit
}

/** Runs one command line, and answers the exit code. */
export const run = async (world: World): Promise<number> => {
  const { argv, env, cwd } = world
  const isJson = argv.includes('--json')
  const terminal = createTerminal(world, env, { isJson, noColor: argv.includes('--no-color') })
  terminal.hide(env['TRELLIS_TOKEN'])
  try {
    if (argv[0] === '--version' || argv[0] === '-V') {
      terminal.answer({ version: version() }, () => terminal.print(version()))
      return exits.done
    }
    // flags may stand before the command: its own are known only after it
    const every = Object.assign({}, globalFlags, ...commands.map(({ flags }) => flags))
    const isHelp = argv[0] === 'help'
    const { words } = parseLoosely(isHelp ? argv.slice(1) : argv, every)
    if (words.length === 0) {
      parse(isHelp ? argv.slice(1) : argv, globalFlags)
      showHelp(terminal)
      return isHelp || argv.includes('--help') || argv.includes('-h') ? exits.done : exits.usage
    }
    const { command, used } = find(words)
    if (isHelp) {
      showHelpOf(command, terminal)
      return exits.done
    }
    const parsed = parse(argv, flagsOf(command))
    if (parsed.switches.has('help')) {
      showHelpOf(command, terminal)
      return exits.done
    }
    const args = parsed.words.slice(used)
    checkWords(command, args)
    return await command.run({
      terminal,
      env,
      cwd,
      args,
      option: (name) => parsed.options.get(name),
      has: (name) => parsed.switches.has(name),
    })
  } catch (error) {
    return fail(terminal, error, Boolean(env['TRELLIS_DEBUG']))
  }
}

/** The words alone: which flags there are is known when the command is. */
const parseLoosely = (argv: readonly string[], flags: Parameters<typeof parse>[1]): { words: readonly string[] } => {
  try {
    return parse(argv, flags)
  } catch {
    return { words: argv.filter((word) => !word.startsWith('-')) }
  }
}
