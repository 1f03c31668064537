import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { styleText } from 'node:util'
import { columns } from '../../server/columns.ts'
import { restore } from './exact.ts'
import { CliError, exits } from './exit.ts'

type Out = Writable & { readonly isTTY?: boolean; readonly columns?: number }
type In = Readable & { readonly isTTY?: boolean }
export type Streams = { readonly stdin: In; readonly stdout: Out; readonly stderr: Out }

export type Paint = {
  readonly bold: (text: string) => string
  readonly dim: (text: string) => string
  readonly red: (text: string) => string
  readonly green: (text: string) => string
  readonly yellow: (text: string) => string
}

export type Terminal = {
  readonly isJson: boolean
  /** Whether somebody can be asked. */
  readonly isInteractive: boolean
  readonly paint: Paint
  /** A line of the answer. */
  print(line?: string): void
  /** A line beside the answer: notes, questions, errors. */
  say(line: string): void
  /** With --json this value, else what `show` prints. */
  answer(value: unknown, show: () => void): void
  /** Shows on a terminal that something is being waited for. */
  during<T>(what: string, work: (say: (what: string) => void) => Promise<T>): Promise<T>
  ask(question: string): Promise<string>
  /** From now on this text is never printed, whatever prints it. */
  hide(secret: string | undefined): void
  table(rows: readonly (readonly string[])[]): void
}

/** JSON without characters that a terminal would interpret: JSON itself escapes only some of them. */
export const json = (value: unknown, indent = 0): string =>
  restore(JSON.stringify(value, null, indent)).replace(
    /[\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

const paintOf = (isColored: boolean): Paint => {
  // not by what Node knows of its own standard output: --json, --no-color and the streams that were passed count too
  const by = (style: keyof Paint) => (text: string) =>
    isColored ? styleText(style, text, { validateStream: false }) : text
  return { bold: by('bold'), dim: by('dim'), red: by('red'), green: by('green'), yellow: by('yellow') }
}

export const createTerminal = (
  streams: Streams,
  env: Readonly<Record<string, string | undefined>>,
  { isJson, noColor }: { isJson: boolean; noColor: boolean },
): Terminal => {
  const { stdin, stdout, stderr } = streams
  const isPlain = noColor || Boolean(env['NO_COLOR']) || env['TERM'] === 'dumb'
  const isForced = Boolean(env['FORCE_COLOR']) && env['FORCE_COLOR'] !== '0'
  const paint = paintOf(!isJson && !isPlain && (isForced || stdout.isTTY === true))
  const secrets = new Set<string>()
  const isShowing = !isJson && stderr.isTTY === true && env['TERM'] !== 'dumb'
  let shown = ''

  const without = (text: string): string => {
    let safe = text
    for (const secret of secrets) safe = safe.replaceAll(secret, '***')
    return safe
  }
  const write = (stream: Out, line: string) => {
    if (shown) stderr.write('\r\u001b[K')
    stream.write(without(`${line}\n`))
    if (shown) stderr.write(shown)
  }
  const show = (what: string) => {
    if (!isShowing) return
    shown = what === '' ? '' : without(`${what} …`)
    stderr.write(`\r\u001b[K${shown}`)
  }
  const terminal: Terminal = {
    isJson,
    isInteractive: stdin.isTTY === true && stderr.isTTY === true,
    paint,
    print: (line = '') => write(stdout, line),
    say: (line) => write(stderr, line),
    answer(value, print) {
      if (isJson) terminal.print(json(value, stdout.isTTY ? 2 : 0))
      else print()
    },
    async during(what, work) {
      show(what)
      try {
        return await work(show)
      } finally {
        show('')
      }
    },
    ask: (question) =>
      new Promise((resolve, reject) => {
        const lines = createInterface({ input: stdin, output: stderr })
        const stop = () => {
          lines.close()
          reject(new CliError('INTERRUPTED', exits.interrupted, 'Nothing was done.'))
        }
        lines.once('SIGINT', stop)
        // the end of the input is no answer
        lines.once('close', stop)
        lines.question(`${without(question)} `, (text) => {
          resolve(text.trim())
          lines.close()
        })
      }),
    // a short one would tear holes into words
    hide: (secret) => void (secret && secret.length >= 8 && secrets.add(secret)),
    table(rows) {
      for (const line of columns(rows)) terminal.print(line)
    },
  }
  return terminal
}
