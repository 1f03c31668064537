import { adminGetUser, listUsers } from '../../../sdk/src/generated/admin.ts'
import { plain } from '../../../server/plain.ts'
import { apiFor } from '../api.ts'
import type { Command } from '../command.ts'
import { CliError, exits } from '../exit.ts'
import { isUuid, projectFor } from '../settings.ts'
import { json } from '../terminal.ts'

const shown = (value: unknown) => (typeof value === 'object' ? json(value) : plain(value))

export const usersShow: Command = {
  name: 'users show',
  summary: 'Show a user by id, mail address or external id',
  takes: [{ name: 'USER', about: 'an id, a mail address or an external id', isRequired: true }],
  async run(context) {
    const { terminal, args } = context
    const [wanted = ''] = args
    const projectId = await projectFor(context)
    const { call } = await apiFor(context)
    let userId = wanted
    if (!isUuid(wanted)) {
      const { data: found } = await call(listUsers, { path: { projectId }, query: { search: wanted, limit: 100 } })
      const isMeant = (text: string | null) => text !== null && text.toLowerCase() === wanted.toLowerCase()
      const exact = found.filter(({ email, external_id }) => isMeant(email) || external_id === wanted)
      const [one] = exact
      if (!one || exact.length > 1) {
        const like = found.slice(0, 5).map(({ id, email, display_name }) => `${id}  ${plain(email ?? display_name)}`)
        throw new CliError(
          'USER_NOT_FOUND',
          exits.notFound,
          exact.length > 1 ? `${exact.length} users are "${wanted}".` : `No user is "${wanted}".`,
          like.length > 0 ? `These are like it: ${like.join('; ')}` : undefined,
        )
      }
      userId = one.id
    }
    const { data: user } = await call(adminGetUser, { path: { projectId, userId } })
    terminal.answer(user, () => {
      const rows = Object.entries(user).filter(
        ([, value]) => value !== null && json(value) !== '[]' && json(value) !== '{}',
      )
      terminal.table(rows.map(([name, value]) => [plain(name), shown(value)]))
    })
    return exits.done
  },
}
