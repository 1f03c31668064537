import { styleText } from 'node:util'
import { type Logger, pino } from 'pino'
import type { Config } from '#server/config.ts'
import { escaped } from '#server/plain.ts'
import { traceFields } from '#server/telemetry/spans.ts'

/** Where log lines go: standard output, or what a test passes. */
type Output = { readonly isTTY?: boolean; write(text: string): unknown }

/** Log lines for a person where standard output is a terminal, and otherwise one line of JSON each. */
export const createLog = (
  config: Pick<Config, 'LOG_LEVEL'> & Partial<Pick<Config, 'OTEL_EXPORTER_OTLP_ENDPOINT'>>,
  output: Output = process.stdout,
): Logger => {
  const options = {
    level: config.LOG_LEVEL,
    base: { process: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    // of the request or the job that a line is about
    ...(config.OTEL_EXPORTER_OTLP_ENDPOINT === undefined ? {} : { mixin: traceFields }),
  }
  if (output.isTTY) return pino(options, { write: (line) => void output.write(readableLine(line)) })
  return output === process.stdout ? pino(options) : pino(options, output as { write(line: string): void })
}

/**
 * A message of the program about itself, at any LOG_LEVEL: `text` on a terminal, and otherwise a line of JSON, so that standard output
 * can be parsed line by line.
 */
export const announce = (
  message: string,
  fields: Readonly<Record<string, unknown>> = {},
  text = `${message}\n`,
  output: Output = process.stdout,
): void => {
  const line = { level: 30, time: new Date().toISOString(), process: process.pid, ...fields, msg: message }
  output.write(output.isTTY ? text : `${JSON.stringify(line)}\n`)
}

type Color = 'gray' | 'green' | 'yellow' | 'red'

const names: Readonly<Record<number, readonly [name: string, color: Color]>> = {
  10: ['TRACE', 'gray'],
  20: ['DEBUG', 'gray'],
  30: ['INFO ', 'green'],
  40: ['WARN ', 'yellow'],
  50: ['ERROR', 'red'],
  60: ['FATAL', 'red'],
}

/** A line of JSON as `time LEVEL message key=value ...`; an error's stack follows on lines of its own. */
export const readableLine = (line: string, hasColor = !process.env['NO_COLOR']): string => {
  const { level, time, msg = '', process: _process, error, ...fields } = JSON.parse(line) as Record<string, unknown>
  const paint = (text: string, color: Color) => (hasColor ? styleText(color, text, { validateStream: false }) : text)
  const [name, color] = names[Number(level)] ?? [String(level), 'gray']
  const [reason, ...stack] = error === undefined ? [] : textOf(error).split('\n')
  const pairs = Object.entries({ ...fields, ...(reason === undefined ? {} : { error: reason }) }).map(
    ([key, value]) => `${paint(`${escaped(key)}=`, 'gray')}${quoted(value)}`,
  )
  const clock = String(time).slice(11, 23)
  const head = [paint(clock, 'gray'), paint(name, color), escaped(String(msg)), ...pairs].join(' ')
  return `${[head, ...stack.map((each) => `    ${escaped(each.trim())}`)].join('\n')}\n`
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

const quoted = (value: unknown): string => {
  const text = textOf(value)
  return escaped(typeof value === 'string' && /[\s"=]|^$/.test(text) ? JSON.stringify(text) : text)
}
