import { readFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { failureOf } from '#server/database/failures.ts'
import { StartError } from '#server/errors.ts'

export const print = (line: string) => process.stdout.write(`${line}\n`)

type Options = Readonly<Record<string, { type: 'string' | 'boolean'; multiple?: boolean; short?: string }>>
type Values = Readonly<Record<string, string | boolean | (string | boolean)[] | undefined>>

/** Runs a command of one file: its options, its usage, and what goes wrong as a sentence with the exit code 1. */
export const run = async (options: Options, usage: string, work: (values: Values) => Promise<void>): Promise<void> => {
  try {
    const { values } = readArguments(options, usage)
    if (values['help']) print(usage)
    else await work(values)
  } catch (error) {
    process.stderr.write(`${explain(error)}\n`)
    process.exitCode = 1
  }
}

const readArguments = (options: Options, usage: string) => {
  try {
    return parseArgs({ options: { ...options, help: { type: 'boolean', short: 'h' } }, strict: true })
  } catch (error) {
    throw new StartError(`${(error as Error).message}\n\n${usage}`)
  }
}

const explain = (error: unknown): string => {
  const { code, message } = error as NodeJS.ErrnoException
  if (error instanceof StartError) return message
  if (code === 'ENOSPC') return 'The disk is full: nothing was kept.'
  const failure = failureOf(error)
  if (failure.kind === 'unavailable') return `The database cannot be reached: ${message}`
  return code ? `${message} (${code})` : String(message)
}

/** An option that must be there. */
export const textOf = (value: Values[string], otherwise: string | undefined, what: string): string => {
  const found = typeof value === 'string' ? value : otherwise
  if (!found) throw new StartError(what)
  return found
}

export const listOf = (value: Values[string]): string[] => (Array.isArray(value) ? value.map(String) : [])

export const readText = async (path: string): Promise<string> =>
  readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new StartError(`${path} cannot be read: ${error.code}`)
  })
