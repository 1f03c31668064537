import type { Terminal } from './terminal.ts'

export type Flag = {
  /** What its value is called in the help; a flag without one is a switch. */
  readonly value?: string
  readonly short?: string
  readonly about: string
  readonly choices?: readonly string[]
  /** Its value is a path: the shell completes files. */
  readonly isFile?: boolean
}
export type Argument = {
  readonly name: string
  readonly about: string
  readonly isRequired?: boolean
  readonly choices?: readonly string[]
}

/** What a command is: the parser, the help, and the completion of the shells all read this. */
export type Command = {
  /** One word or two: `events tail`. */
  readonly name: string
  readonly summary: string
  /** Shown by its help below the summary. */
  readonly about?: string
  readonly takes?: readonly Argument[]
  readonly flags?: Readonly<Record<string, Flag>>
  /** Answers the exit code. */
  run(context: Context): Promise<number>
}

export type Context = {
  readonly terminal: Terminal
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly args: readonly string[]
  /** The value of a flag, if it was given. */
  option(name: string): string | undefined
  /** Whether a switch was given. */
  has(name: string): boolean
}

/** Flags of every command. */
export const globalFlags: Readonly<Record<string, Flag>> = {
  json: { about: 'Answer JSON on stdout, errors as JSON on stderr' },
  url: { value: 'URL', about: 'The server; else TRELLIS_URL, trellis.json, the last sign-in' },
  project: { value: 'ID', short: 'p', about: 'The project; else TRELLIS_PROJECT, trellis.json' },
  'no-color': { about: 'No colours, as NO_COLOR does' },
  help: { short: 'h', about: 'Show the help of a command' },
}
