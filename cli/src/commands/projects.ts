import { createProject, listProjects } from '../../../sdk/src/generated/admin.ts'
import { plain } from '../../../server/plain.ts'
import { apiFor } from '../api.ts'
import type { Command } from '../command.ts'
import { exits } from '../exit.ts'

export const projectsList: Command = {
  name: 'projects list',
  summary: 'List your projects, newest first',
  flags: { organization: { value: 'ID', about: 'Those of one organization' } },
  async run(context) {
    const { terminal } = context
    const { call } = await apiFor(context)
    const organization_id = context.option('organization')
    const { data: projects } = await call(listProjects, organization_id ? { query: { organization_id } } : {})
    terminal.answer(projects, () => {
      if (projects.length === 0) terminal.print('You have no project yet: trellis projects create NAME makes one.')
      else terminal.table(projects.map(({ id, name, created_at }) => [id, plain(created_at), plain(name)]))
    })
    return exits.done
  },
}

const environments = ['development', 'production'] as const

export const projectsCreate: Command = {
  name: 'projects create',
  summary: 'Create a project, and show its two API keys, once',
  about: 'The keys are shown here and never again; others are made in the console.',
  takes: [{ name: 'NAME', about: 'what the project is called', isRequired: true }],
  flags: {
    environment: { value: 'NAME', about: 'development or production, the default', choices: environments },
    organization: { value: 'ID', about: 'The organization; else your own' },
  },
  async run(context) {
    const { terminal, args } = context
    const [name = ''] = args
    const environment = environments.find((one) => one === context.option('environment'))
    const organization_id = context.option('organization')
    const { call } = await apiFor(context)
    const body = { name, ...(environment ? { environment } : {}), ...(organization_id ? { organization_id } : {}) }
    const { data } = await terminal.during('Creating', () => call(createProject, { body }))
    const { project, api_keys } = data
    terminal.answer({ project: { id: project.id, name: project.name }, api_keys }, () => {
      terminal.print(`Created ${terminal.paint.bold(plain(project.name))} (${project.id}).`)
      terminal.print()
      terminal.table([
        ['client key', plain(api_keys.client.key), 'goes into apps'],
        ['server key', plain(api_keys.server.key), 'stays on servers'],
      ])
      terminal.print()
      terminal.print(`Next: trellis init FOLDER --project ${project.id}`)
    })
    return exits.done
  },
}
