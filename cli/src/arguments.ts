import { parseArgs } from 'node:util'
import { type Command, type Flag, globalFlags } from './command.ts'
import { usageError } from './exit.ts'
import { didYouMean } from './similar.ts'

export type Parsed = {
  readonly words: readonly string[]
  readonly options: ReadonlyMap<string, string>
  readonly switches: ReadonlySet<string>
}

export const flagsOf = (command: Command | undefined): Readonly<Record<string, Flag>> => ({
  ...globalFlags,
  ...command?.flags,
})

type Token = {
  readonly kind: string
  readonly name?: string
  readonly rawName?: string
  readonly value?: string | undefined
}

/** Reads arguments after these flags. `parseArgs` finds the tokens, and what is wrong with them is said here, with what may have been meant. */
export const parse = (args: readonly string[], flags: Readonly<Record<string, Flag>>): Parsed => {
  const options = Object.fromEntries(
    Object.entries(flags).map(([name, { value, short }]) => [
      name,
      { type: value ? ('string' as const) : ('boolean' as const), ...(short ? { short } : {}) },
    ]),
  )
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true })
  const words: string[] = []
  const values = new Map<string, string>()
  const switches = new Set<string>()
  for (const { kind, name = '', rawName = '', value } of tokens as Token[]) {
    if (kind === 'positional') words.push(value ?? '')
    if (kind !== 'option') continue
    const flag = Object.hasOwn(flags, name) ? flags[name] : undefined
    if (!flag) {
      const known = Object.keys(flags).map((one) => `--${one}`)
      throw usageError(`There is no option ${rawName}.`, didYouMean(rawName, known))
    }
    if (!flag.value) {
      if (value !== undefined) throw usageError(`${rawName} takes no value.`)
      switches.add(name)
    } else if (value === undefined || value === '')
      throw usageError(`${rawName} needs a value: ${rawName} ${flag.value}.`)
    else if (flag.choices && !flag.choices.includes(value)) {
      throw usageError(`${rawName} must be one of ${flag.choices.join(', ')}.`, didYouMean(value, flag.choices))
    } else values.set(name, value)
  }
  return { words, options: values, switches }
}

/** The words behind the name of a command, as many as it takes. */
export const checkWords = (command: Command, words: readonly string[]): void => {
  const { takes = [] } = command
  const missing = takes.slice(words.length).find(({ isRequired }) => isRequired)
  if (missing) throw usageError(`trellis ${command.name} needs ${missing.name}: ${missing.about}.`)
  const [extra] = words.slice(takes.length)
  if (extra !== undefined) throw usageError(`trellis ${command.name} does not take "${extra}".`)
  for (const [index, word] of words.entries()) {
    const choices = takes[index]?.choices
    if (choices && !choices.includes(word)) {
      throw usageError(`${takes[index]?.name} must be one of ${choices.join(', ')}.`, didYouMean(word, choices))
    }
  }
}
