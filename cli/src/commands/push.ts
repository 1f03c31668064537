import { plain } from '../../../server/plain.ts'
import { apiFor } from '../api.ts'
import type { Command } from '../command.ts'
import { showPlan, summaryOf } from '../diff.ts'
import { CliError, exits, usageError } from '../exit.ts'
import { apply, kindFlag, localOf, planOf } from '../promotion.ts'

export const push: Command = {
  name: 'push',
  summary: 'Make the project equal to the files',
  about:
    'All of it or nothing. What was planned is what is applied: if the project changes in between, the push ends with 6 and changes nothing.',
  flags: {
    kind: kindFlag,
    prune: { about: 'Delete what the files do not have; collections and levels stay' },
    plan: { value: 'HASH', about: 'Push only if the plan is the one with this hash' },
    yes: { short: 'y', about: 'Do not ask' },
  },
  async run(context) {
    const { terminal } = context
    const { print, paint } = terminal
    const prune = context.has('prune')
    const wanted = context.option('plan')
    const api = await apiFor(context)
    const local = await localOf(context, api)
    const made = await terminal.during('Planning', () => planOf(api, local, prune))
    if (wanted && wanted !== made.plan_hash) {
      throw new CliError(
        'PLAN_CHANGED',
        exits.conflict,
        `The plan is ${made.plan_hash} now.`,
        'The files or the project have changed since: look at the new plan.',
      )
    }
    if (!terminal.isJson && !made.clean) {
      showPlan(terminal, made)
      print()
      print(`${summaryOf(made)}.`)
    }
    if (made.blocked.length > 0) {
      throw new CliError(
        'PLAN_BLOCKED',
        exits.blocked,
        `${made.blocked.length} of the definitions cannot be pushed.`,
        'Nothing was changed.',
      )
    }
    const project = { id: local.project.id, name: local.project.name }
    if (made.clean) {
      terminal.answer({ project: project.id, plan_hash: made.plan_hash, pushed: 0 }, () =>
        print(prune ? 'Nothing to push.' : 'Nothing to do: the project is what the files say.'),
      )
      return exits.done
    }
    if (!context.has('yes') && !wanted) {
      if (!terminal.isInteractive)
        throw usageError('Nobody can be asked.', 'Say --yes, or --plan with the hash of a plan.')
      const answer = await terminal.ask(`Push to ${paint.bold(plain(project.name))}? Only yes goes on:`)
      if (answer !== 'yes') throw new CliError('NOT_CONFIRMED', exits.failed, 'Nothing was changed.')
    }
    const applied = await terminal.during('Pushing', () => apply(api, local, made, prune))
    terminal.answer({ project: project.id, plan_hash: made.plan_hash, pushed: made.ops.length, ...applied }, () =>
      print(
        paint.green(
          `Pushed ${made.ops.length} ${made.ops.length === 1 ? 'change' : 'changes'} to ${plain(project.name)}.`,
        ),
      ),
    )
    return exits.done
  },
}
