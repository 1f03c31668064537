import { plain } from '../../../server/plain.ts'
import { apiFor } from '../api.ts'
import type { Command } from '../command.ts'
import { exits, usageError } from '../exit.ts'
import { compareFiles, writeFiles } from '../files.ts'
import { checkKinds, exportOf, kindFlag, kindsOf } from '../promotion.ts'
import { projectFor, requireManifest } from '../settings.ts'

const signs = { create: '+', update: '~', delete: '-' } as const

export const pull: Command = {
  name: 'pull',
  summary: 'Write the definitions of the project into the files',
  about: 'Files that would be changed or deleted are shown first, and asked about: git has what they were.',
  flags: {
    kind: kindFlag,
    yes: { short: 'y', about: 'Do not ask' },
    check: { about: 'Write nothing; end with 8 if the files differ from the project' },
  },
  async run(context) {
    const { terminal } = context
    const { folder } = await requireManifest(context)
    const project = await projectFor(context)
    const api = await apiFor(context)
    const kinds = kindsOf(context)
    const { definitions, ...read } = await terminal.during('Reading the project', () => exportOf(api, project))
    if (kinds) await checkKinds(folder, kinds, definitions)
    const left_out = read.left_out.filter(({ kind }) => !kinds || kinds.includes(kind))
    const changes = await compareFiles(folder, definitions, kinds)
    const { paint, print } = terminal
    const isCheck = context.has('check')
    if (!terminal.isJson) {
      const color = { create: paint.green, update: paint.yellow, delete: paint.red }
      for (const { op, file } of changes) print(`${color[op](signs[op])} ${plain(file)}`)
      for (const { kind, key, reason } of left_out) terminal.say(`! ${plain(kind)}/${plain(key)}: ${plain(reason)}`)
    }
    const isLosing = changes.some(({ op }) => op !== 'create')
    if (!isCheck && isLosing && !context.has('yes')) {
      if (!terminal.isInteractive) throw usageError('Files would be changed or deleted.', 'Say --yes if they may be.')
      const answer = await terminal.ask('Change these files? Only yes goes on:')
      if (answer !== 'yes') throw usageError('Nothing was written.')
    }
    if (!isCheck) await writeFiles(folder, definitions, kinds)
    terminal.answer({ changes, left_out, written: !isCheck }, () => {
      const count = `${changes.length} ${changes.length === 1 ? 'file' : 'files'}`
      if (changes.length === 0) print('The files are what the project has.')
      else print(isCheck ? `${count} ${changes.length === 1 ? 'differs' : 'differ'}.` : `${count} written.`)
    })
    return isCheck && changes.length > 0 ? exits.different : exits.done
  },
}
