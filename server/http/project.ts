import type { CallSettings, Reply } from '#server/database/database.ts'
import type { Arguments } from '#server/database/statements.ts'
import type { HandlerContext } from '#server/http/route.ts'

/** The id of the project that a request is about. */
export const projectIdOf = ({ resolved }: Pick<HandlerContext, 'resolved'>): string => resolved.project?.projectId ?? ''

/** A function of control about the project of a developer's request, whose own function is one of the project's database. */
export const callControl = (
  context: Pick<HandlerContext, 'services' | 'resolved'>,
  name: string,
  args: Arguments,
  settings: CallSettings = {},
): Promise<Reply> => {
  const { services, resolved } = context
  const ofProject = { project_id: projectIdOf(context), ...args }
  return services.database.call(services.control, 'control_developer', resolved.claims, name, ofProject, settings)
}
