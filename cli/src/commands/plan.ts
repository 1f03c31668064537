import { plain } from '../../../server/plain.ts'
import { apiFor } from '../api.ts'
import type { Command } from '../command.ts'
import { showPlan, summaryOf } from '../diff.ts'
import { exits } from '../exit.ts'
import { keptOf, kindFlag, localOf, planOf } from '../promotion.ts'

export const plan: Command = {
  name: 'plan',
  summary: 'Show what the project lacks of the files; nothing is changed',
  flags: {
    kind: kindFlag,
    prune: { about: 'Plan to delete what the files do not have; collections and levels stay' },
    check: { about: 'End with 8 if the project differs from the files' },
  },
  async run(context) {
    const { terminal } = context
    const api = await apiFor(context)
    const local = await localOf(context, api)
    const prune = context.has('prune')
    const made = await terminal.during('Planning', () => planOf(api, local, prune))
    const kept = prune ? await keptOf(api, local, made) : []
    terminal.answer({ project: local.project.id, ...made, ...(prune ? { kept } : {}) }, () => {
      const { print, paint } = terminal
      print(`Plan for ${paint.bold(plain(local.project.name))} (${local.project.id})`)
      if (made.clean && kept.length === 0) return print('Nothing to do: the project is what the files say.')
      print()
      showPlan(terminal, made)
      for (const { kind, key } of kept)
        print(`= ${paint.bold(`${plain(kind)}/${plain(key)}`)} is not in the files, and stays: a push never deletes it`)
      print()
      if (made.clean)
        return print(`Nothing to push: ${kept.length} that the files do not have can only be deleted by hand.`)
      print(`${summaryOf(made)}.`)
      print(`Plan ${plain(made.plan_hash)}`)
    })
    if (made.blocked.length > 0) return exits.blocked
    return context.has('check') && !made.clean ? exits.different : exits.done
  },
}
