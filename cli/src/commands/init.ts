import { mkdir, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { plain } from '../../../server/plain.ts'
import { apiFor } from '../api.ts'
import { chooseProject } from '../choose.ts'
import type { Command } from '../command.ts'
import { exits, usageError } from '../exit.ts'
import { writeFiles } from '../files.ts'
import { writeManifest, writeWhole } from '../manifest.ts'
import { exportOf } from '../promotion.ts'
import { manifestName, serverOf } from '../settings.ts'

const readme = `# Definitions

\`trellis.json\` names the server and the project. Each file in \`collections/\` and \`definitions/<kind>/\` is one definition, under its key.

- \`trellis pull\` writes what the project has into the files
- \`trellis plan\` shows what the project lacks of them
- \`trellis push\` makes the project equal to them
`

export const init: Command = {
  name: 'init',
  summary: 'Make a folder with trellis.json, collections and definitions as files',
  about: 'With --project, the folder is linked to the project and holds its definitions.',
  takes: [{ name: 'FOLDER', about: 'The folder, this one by default' }],
  async run(context) {
    const { terminal, args, cwd, env } = context
    const folder = resolve(cwd, args[0] ?? '.')
    const file = join(folder, manifestName)
    if (await stat(file).catch(() => undefined)) throw usageError(`${file} is there already.`)
    const wanted = context.option('project') ?? (env['TRELLIS_PROJECT'] || undefined)
    const named = context.option('url') ?? (env['TRELLIS_URL'] || undefined)
    // asked before anything is made: a refusal leaves no half of a folder
    const from = wanted ? await apiFor(context) : undefined
    const project = from && (await chooseProject(context, from, wanted))
    const exported = from && project && (await exportOf(from, project.id))
    const url = from?.url ?? (named ? serverOf(named, env) : undefined)
    for (const one of ['collections', 'definitions']) await mkdir(join(folder, one), { recursive: true })
    const files = exported ? await writeFiles(folder, exported.definitions) : []
    if (!(await stat(join(folder, 'README.md')).catch(() => undefined))) {
      await writeWhole(join(folder, 'README.md'), readme)
    }
    // last: with it the folder is one
    await writeManifest(folder, { version: 1, ...(url ? { url } : {}), ...(project ? { project: project.id } : {}) })
    terminal.answer({ folder, url: url ?? null, project: project?.id ?? null, files: files.length }, () => {
      terminal.print(`Made ${folder}.`)
      if (project)
        terminal.print(
          `Linked to ${plain(project.name)}, with ${files.length} ${files.length === 1 ? 'definition' : 'definitions'}.`,
        )
      else terminal.print('Next: trellis login, trellis link, trellis pull.')
    })
    return exits.done
  },
}
