import { resolve } from 'node:path'
import { getCollectionTypes } from '../../../sdk/src/generated/admin.ts'
import { apiFor } from '../api.ts'
import type { Command } from '../command.ts'
import { exits } from '../exit.ts'
import { writeWhole } from '../manifest.ts'
import { projectFor } from '../settings.ts'
import { json } from '../terminal.ts'

export const types: Command = {
  name: 'types',
  summary: 'TypeScript or JSON Schema of the rows of the collections',
  flags: {
    out: { value: 'FILE', short: 'o', isFile: true, about: 'Write into a file, else stdout' },
    format: { value: 'FORMAT', about: 'What to make, typescript by default', choices: ['typescript', 'json-schema'] },
  },
  async run(context) {
    const { terminal, cwd } = context
    const projectId = await projectFor(context)
    const { call } = await apiFor(context)
    const { data } = await call(getCollectionTypes, { path: { projectId } })
    const out = context.option('out')
    const text = context.option('format') === 'json-schema' ? `${json(data.json_schema, 2)}\n` : data.typescript
    if (out === undefined) {
      terminal.answer(data, () => terminal.print(text.trimEnd()))
      return exits.done
    }
    const file = resolve(cwd, out)
    await writeWhole(file, text)
    terminal.answer({ file, collections: Object.keys(data.json_schema) }, () => terminal.say(`Wrote ${file}.`))
    return exits.done
  },
}
