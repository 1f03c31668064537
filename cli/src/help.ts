import { type Command, type Flag, globalFlags } from './command.ts'
import { commands } from './commands.ts'
import type { Terminal } from './terminal.ts'

const usageOf = ({ name, takes = [], flags = {} }: Command): string => {
  const words = takes.map((one) => (one.isRequired ? one.name : `[${one.name}]`))
  return ['trellis', name, ...words, Object.keys(flags).length > 0 ? '[options]' : ''].filter(Boolean).join(' ')
}

const flagRow = ([name, { value, short, about, choices }]: [string, Flag]): string[] => [
  `  ${short ? `-${short}, ` : ''}--${name}${value ? ` ${value}` : ''}`,
  `${about}${choices ? `: ${choices.join(', ')}` : ''}`,
]

export const showHelp = ({ print, table, paint }: Terminal): void => {
  print(`${paint.bold('trellis')} <command> [options]: projects of a Trellis server from the command line`)
  print()
  table(commands.map((command) => [`  ${command.name}`, command.summary]))
  print()
  print(paint.bold('Options of every command'))
  table([...Object.entries(globalFlags).map(flagRow), ['  --version', 'Show the version']])
  print()
  print('TRELLIS_URL and TRELLIS_TOKEN stand for a sign-in, as in CI. `trellis help push` explains a command.')
}

export const showHelpOf = (command: Command, { print, table, paint }: Terminal): void => {
  print(paint.bold(usageOf(command)))
  print()
  print(command.summary)
  if (command.about) print(command.about)
  const rows = [
    ...(command.takes ?? []).map(({ name, about, choices }) => [
      `  ${name}`,
      `${about}${choices ? `: ${choices.join(', ')}` : ''}`,
    ]),
    ...Object.entries(command.flags ?? {}).map(flagRow),
    ...Object.entries(globalFlags).map(flagRow),
  ]
  print()
  table(rows)
}
