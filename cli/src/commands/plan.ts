import { apiFor } from '../api.ts'
import type { Command } from '../command.ts'
import { showPlan, summaryOf } from '../diff.ts'
import { exits } from '../exit.ts'
import { localOf, planOf } from '../promotion.ts'
import { plain } from '../terminal.ts'

export const plan: Command = {
  name: 'plan',
  summary: 'Show what the project lacks of the files; nothing is changed',
  flags: {
    prune: { about: 'Plan to delete what the files do not have' },
    check: { about: 'End with 8 if the project differs from the files' },
  },
  async run(context) {
    const { terminal } = context
    const api = await apiFor(context)
    const local = await localOf(context, api)
    const made = await terminal.during('Planning', () => planOf(api, local, context.has('prune')))
    terminal.answer({ project: local.project.id, ...made }, () => {
      const { print, paint } = terminal
      print(`Plan for ${paint.bold(plain(local.project.name))} (${local.project.id})`)
      if (made.clean) return print('Nothing to do: the project is what the files say.')
      print()
      showPlan(terminal, made)
      print()
      print(`${summaryOf(made)}.`)
      print(`Plan ${plain(made.plan_hash)}`)
    })
    if (made.blocked.length > 0) return exits.blocked
    return context.has('check') && !made.clean ? exits.different : exits.done
  },
}
