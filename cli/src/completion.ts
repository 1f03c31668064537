import { type Command, type Flag, globalFlags } from './command.ts'

const firstWords = (commands: readonly Command[]) => [
  ...new Set(commands.map(({ name }) => name.split(' ')[0] ?? '').concat('help')),
]
const secondWords = (commands: readonly Command[], first: string) =>
  commands.flatMap(({ name }) => (name.startsWith(`${first} `) ? [name.slice(first.length + 1)] : []))
const flagsOf = ({ flags = {} }: Command): [string, Flag][] => Object.entries({ ...flags, ...globalFlags })
const groups = (commands: readonly Command[]) =>
  firstWords(commands).filter((first) => secondWords(commands, first).length > 0)

const bash = (commands: readonly Command[]): string => {
  const values = new Map<string, string>()
  const cases = commands.map((command) => {
    for (const [name, { choices, isFile }] of flagsOf(command)) {
      if (choices) values.set(`--${name}`, `COMPREPLY=($(compgen -W '${choices.join(' ')}' -- "$word"))`)
      else if (isFile) values.set(`--${name}`, `COMPREPLY=($(compgen -f -- "$word"))`)
    }
    const choices = (command.takes ?? []).flatMap((one) => one.choices ?? [])
    const words = [...choices, ...flagsOf(command).map(([name]) => `--${name}`)]
    return `    '${command.name}') known='${words.join(' ')}' ;;`
  })
  const starts = groups(commands).map((first) => `    '${first}') known='${secondWords(commands, first).join(' ')}' ;;`)
  const files = [...values].map(([flag, what]) => `    ${flag}) ${what}; return ;;`)
  return `_trellis() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} said='' known='' i
  for ((i = 1; i < COMP_CWORD; i += 1)); do
    case \${COMP_WORDS[i]} in -*) ;; *) said="\${said:+$said }\${COMP_WORDS[i]}" ;; esac
  done
  case $before in
${files.join('\n')}
  esac
  case $said in
    '') known='${firstWords(commands).join(' ')} --help --version' ;;
    help) known='${firstWords(commands).join(' ')}' ;;
${[...cases, ...starts].join('\n')}
  esac
  COMPREPLY=($(compgen -W "$known" -- "$word"))
}
complete -F _trellis trellis`
}

const quoted = (text: string) => text.replace(/[[\]:'\\]/g, (letter) => (letter === "'" ? "'\\''" : `\\${letter}`))

const zsh = (commands: readonly Command[]): string => {
  const describe = (rows: readonly (readonly [string, string])[]) =>
    rows.map(([name, about]) => `'${quoted(name)}:${quoted(about)}'`).join(' ')
  const firsts = firstWords(commands).map((first): [string, string] => [
    first,
    commands.find(({ name }) => name === first)?.summary ?? (first === 'help' ? 'Explain a command' : `${first} …`),
  ])
  const flag = ([name, { value, about, choices, isFile }]: [string, Flag]) =>
    `'--${name}[${quoted(about)}]${value ? `:${value}:${choices ? `(${choices.join(' ')})` : isFile ? '_files' : ' '}` : ''}'`
  const cases = commands.map((command) => {
    const words = (command.takes ?? []).map(
      ({ name, choices }) => `':${name}:${choices ? `(${choices.join(' ')})` : ' '}'`,
    )
    return `    '${command.name}') _arguments ${[...flagsOf(command).map(flag), ...words].join(' ')} ;;`
  })
  const starts = groups(commands).map((first) => {
    const rows = secondWords(commands, first).map((second): [string, string] => [
      second,
      commands.find(({ name }) => name === `${first} ${second}`)?.summary ?? '',
    ])
    return `    '${first}') known=(${describe(rows)}); _describe command known ;;`
  })
  const names = groups(commands).join('|')
  return `_trellis() {
  local -a known
  local said=''
  if (( CURRENT == 2 )); then
    known=(${describe(firsts)})
    _describe command known
    return
  fi
  said=\${words[2]}
  case $said in
    (${names}) if (( CURRENT > 3 )); then said="$said \${words[3]}"; shift words; (( CURRENT -= 1 )); fi ;;
  esac
  shift words
  (( CURRENT -= 1 ))
  case $said in
${[...cases, ...starts].join('\n')}
    help) known=(${describe(firsts)}); _describe command known ;;
  esac
}
compdef _trellis trellis`
}

const fish = (commands: readonly Command[]): string => {
  const text = (words: string) => `'${words.replace(/['\\]/g, '\\$&')}'`
  const lines = ['complete -c trellis -f']
  const none = '__fish_use_subcommand'
  for (const first of firstWords(commands)) {
    const about = commands.find(({ name }) => name === first)?.summary ?? ''
    lines.push(`complete -c trellis -n ${text(none)} -a ${first}${about ? ` -d ${text(about)}` : ''}`)
    for (const second of secondWords(commands, first)) {
      lines.push(`complete -c trellis -n ${text(`__fish_seen_subcommand_from ${first}`)} -a ${second}`)
    }
  }
  for (const command of commands) {
    const condition = text(`__fish_seen_subcommand_from ${command.name.split(' ')[0]}`)
    const choices = (command.takes ?? []).flatMap((one) => one.choices ?? [])
    if (choices.length > 0) lines.push(`complete -c trellis -n ${condition} -a ${text(choices.join(' '))}`)
    for (const [name, { short, value, about, choices: known, isFile }] of flagsOf(command)) {
      const parts = [
        short ? ` -s ${short}` : '',
        value ? ' -r' : '',
        isFile ? ' -F' : '',
        known ? ` -a ${text(known.join(' '))}` : '',
      ]
      lines.push(`complete -c trellis -n ${condition} -l ${name}${parts.join('')} -d ${text(about)}`)
    }
  }
  return lines.join('\n')
}

export const shells = { bash, zsh, fish } as const

/** A script that a shell reads once: completing starts no program. */
export const completionFor = (shell: keyof typeof shells, commands: readonly Command[]): string =>
  shells[shell](commands)
