import { plain } from '../../../server/plain.ts'
import { apiFor } from '../api.ts'
import { chooseProject } from '../choose.ts'
import type { Command } from '../command.ts'
import { exits } from '../exit.ts'
import { writeManifest } from '../manifest.ts'
import { requireManifest } from '../settings.ts'

export const link: Command = {
  name: 'link',
  summary: 'Remember in trellis.json which project the files belong to',
  takes: [{ name: 'PROJECT', about: 'Its id or its name; without it you choose' }],
  async run(context) {
    const { terminal, args } = context
    const { folder } = await requireManifest(context)
    const api = await apiFor(context)
    const { id, name } = await chooseProject(context, api, args[0] ?? context.option('project'))
    await writeManifest(folder, { version: 1, url: api.url, project: id })
    terminal.answer({ url: api.url, project: id, name, folder }, () =>
      terminal.print(`Linked to ${plain(name)} (${id}).`),
    )
    return exits.done
  },
}
