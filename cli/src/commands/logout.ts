import { signOutDeveloper } from '../../../sdk/src/generated/admin.ts'
import { callsOf } from '../api.ts'
import type { Command } from '../command.ts'
import { createCredentials } from '../credentials.ts'
import { exits } from '../exit.ts'
import { serverFor } from '../settings.ts'

export const logout: Command = {
  name: 'logout',
  summary: 'End the sign-in, here and on the server',
  async run(context) {
    const { terminal, env } = context
    const { url } = await serverFor(context)
    const credentials = createCredentials(env)
    const ended = await credentials.alone(async () => {
      const login = await credentials.read(url)
      if (!login) return undefined
      terminal.hide(login.access_token)
      terminal.hide(login.refresh_token)
      // first here: whoever has no network is signed out on this machine all the same
      await credentials.remove(url)
      return login
    })
    if (ended) await callsOf(url)(signOutDeveloper, { body: { refresh_token: ended.refresh_token }, repeatable: true })
    terminal.answer({ url, signed_out: ended !== undefined }, () =>
      terminal.print(ended ? `Signed out of ${url}.` : `Nobody was signed in to ${url}.`),
    )
    return exits.done
  },
}
