import { getDeveloper } from '../../../sdk/src/generated/admin.ts'
import { plain } from '../../../server/plain.ts'
import { apiFor } from '../api.ts'
import type { Command } from '../command.ts'
import { exits } from '../exit.ts'

export const whoami: Command = {
  name: 'whoami',
  summary: 'Show who is signed in, and what the token may do',
  async run(context) {
    const { terminal } = context
    const { url, call, isFromEnvironment } = await apiFor(context)
    const { data: developer } = await call(getDeveloper)
    const from = isFromEnvironment ? 'TRELLIS_TOKEN' : 'trellis login'
    terminal.answer({ url, from, developer }, () => {
      const { email, token, organizations } = developer
      terminal.print(plain(email))
      terminal.print(`  server         ${url}`)
      terminal.print(`  token          ${token.type}, from ${from}`)
      if (token.scopes) terminal.print(`  scopes         ${plain(token.scopes.join(', '))}`)
      if (token.expires_at) terminal.print(`  expires        ${plain(token.expires_at)}`)
      for (const { name, role } of organizations) terminal.print(`  organization   ${plain(name)} (${plain(role)})`)
    })
    return exits.done
  },
}
