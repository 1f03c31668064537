import { getProject, listProjects } from '../../sdk/src/generated/admin.ts'
import { plain } from '../../server/plain.ts'
import type { Api } from './api.ts'
import type { Context } from './command.ts'
import { CliError, exits, usageError } from './exit.ts'
import { isUuid } from './settings.ts'
import { didYouMean } from './similar.ts'

type Chosen = { readonly id: string; readonly name: string }

/** A project by its id or its name; without either the person chooses. */
export const chooseProject = async (
  { terminal }: Context,
  { call }: Api,
  wanted: string | undefined,
): Promise<Chosen> => {
  if (wanted && isUuid(wanted)) return (await call(getProject, { path: { projectId: wanted } })).data
  const { data: projects } = await call(listProjects)
  if (wanted) {
    const same = projects.filter(({ name }) => name === wanted)
    if (same.length > 1) throw usageError(`${same.length} projects have this name.`, 'Say the id.')
    if (same[0]) return same[0]
    const names = projects.map(({ name }) => name)
    throw new CliError('NOT_FOUND', exits.notFound, `No project is called "${wanted}".`, didYouMean(wanted, names))
  }
  if (projects.length === 0) throw new CliError('NOT_FOUND', exits.notFound, 'You have no project yet.')
  if (!terminal.isInteractive || terminal.isJson) throw usageError('Say which project: its id or its name.')
  for (const [index, { id, name }] of projects.entries()) terminal.say(`${index + 1}  ${plain(name)}  ${id}`)
  const chosen = projects[Number(await terminal.ask(`Which project? 1 to ${projects.length}:`)) - 1]
  if (!chosen) throw usageError('There is no project with this number.')
  return chosen
}
