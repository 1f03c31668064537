/** What the program ends with. Scripts decide by it, so a number never changes its meaning. docs/cli.md lists them. */
export const exits = {
  done: 0,
  failed: 1,
  usage: 2,
  notSignedIn: 3,
  forbidden: 4,
  notFound: 5,
  conflict: 6,
  unreachable: 7,
  different: 8,
  blocked: 9,
  interrupted: 130,
} as const

/** An end that the program has foreseen: a sentence for people, a code for programs, and what helps. */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly exit: number
  readonly code: string
  readonly hint: string | undefined
  /** Where one sentence is not enough: what is wrong, one each. */
  readonly problems: readonly string[]

  constructor(code: string, exit: number, message: string, hint?: string, problems: readonly string[] = []) {
    super(message)
    this.problems = problems
    this.code = code
    this.exit = exit
    this.hint = hint
  }
}

export const usageError = (message: string, hint?: string) => new CliError('USAGE', exits.usage, message, hint)

/** What is wrong with files, each in a sentence that names its file. */
export const filesError = (problems: readonly string[]) =>
  problems.length === 1
    ? usageError(String(problems[0]))
    : new CliError('USAGE', exits.usage, `${problems.length} problems in the files:`, undefined, problems)
