import type { Command } from '../command.ts'
import { completionFor, shells } from '../completion.ts'
import { exits } from '../exit.ts'

export const completion: Command = {
  name: 'completion',
  summary: 'Print the completion of a shell',
  about: [
    'bash: eval "$(trellis completion bash)" in ~/.bashrc',
    'zsh:  eval "$(trellis completion zsh)" in ~/.zshrc, after compinit',
    'fish: trellis completion fish > ~/.config/fish/completions/trellis.fish',
  ].join('\n'),
  takes: [{ name: 'SHELL', about: 'one of these', isRequired: true, choices: Object.keys(shells) }],
  async run({ terminal, args }) {
    // read when it is used: it lists the commands, of which this is one
    const { commands } = await import('../commands.ts')
    const shell = args[0] as keyof typeof shells
    terminal.answer({ shell, script: completionFor(shell, commands) }, () =>
      terminal.print(completionFor(shell, commands)),
    )
    return exits.done
  },
}
