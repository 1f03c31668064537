import { hostname } from 'node:os'
import { pollDeviceSignIn, signOutDeveloper, startDeviceSignIn } from '../../../sdk/src/generated/admin.ts'
import { type Call, isRefusal, isTemporary } from '../../../sdk/src/index.ts'
import { plain } from '../../../server/plain.ts'
import { callsOf } from '../api.ts'
import { openInBrowser } from '../browser.ts'
import type { Command } from '../command.ts'
import { createCredentials } from '../credentials.ts'
import { CliError, exits, usageError } from '../exit.ts'
import { serverFor } from '../settings.ts'

const wait = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1000))

/** Asks once in each interval whether the developer has decided (RFC 8628, 3.5). */
const signedIn = async (call: Call, device_code: string, interval: number) => {
  for (let seconds = interval; ; ) {
    await wait(seconds)
    try {
      return (await call(pollDeviceSignIn, { body: { device_code } })).data
    } catch (error) {
      if (isRefusal(error, 'SLOW_DOWN')) seconds += 5
      else if (isRefusal(error, 'ACCESS_DENIED')) {
        throw new CliError('ACCESS_DENIED', exits.notSignedIn, 'The sign-in was refused on the page.')
      } else if (isRefusal(error, 'EXPIRED_TOKEN')) {
        throw new CliError('EXPIRED_TOKEN', exits.notSignedIn, 'The code has expired.', 'Run trellis login again.')
      } else if (isTemporary(error)) seconds = Math.min(60, seconds * 2)
      else if (!isRefusal(error, 'AUTHORIZATION_PENDING')) throw error
    }
  }
}

export const login: Command = {
  name: 'login',
  summary: 'Sign in: approve a code on a page of the server',
  about: 'The sign-in is kept in a file that only you can read. In CI, set TRELLIS_URL and TRELLIS_TOKEN instead.',
  flags: { 'no-browser': { about: 'Do not open the page' } },
  async run(context) {
    const { terminal, env } = context
    if (env['TRELLIS_TOKEN']) {
      throw usageError('TRELLIS_TOKEN is set, and goes before a sign-in.', 'Unset it, then sign in.')
    }
    const { url } = await serverFor(context)
    const call = callsOf(url)
    const client_name = `trellis on ${hostname()}`.slice(0, 80)
    const { data: grant } = await call(startDeviceSignIn, { body: { client_name } })
    terminal.hide(grant.device_code)
    const page = plain(grant.verification_uri)
    terminal.say(`Open ${page}\nand enter the code ${terminal.paint.bold(plain(grant.user_code))}`)
    if (terminal.isInteractive && !context.has('no-browser')) await openInBrowser(grant.verification_uri, env)
    const session = await terminal.during('Waiting for the approval', () =>
      signedIn(call, grant.device_code, grant.interval),
    )
    const { access_token, refresh_token, developer } = session
    terminal.hide(access_token)
    terminal.hide(refresh_token)
    const credentials = createCredentials(env)
    const before = await credentials.alone(async () => {
      const known = await credentials.read(url)
      await credentials.write(url, { access_token, refresh_token, email: developer.email, client_name })
      return known
    })
    // a session that no program can use any more is ended
    if (before) await call(signOutDeveloper, { body: { refresh_token: before.refresh_token } }).catch(() => undefined)
    terminal.answer({ url, email: developer.email, file: credentials.file }, () =>
      terminal.print(`Signed in to ${url} as ${plain(developer.email)}.`),
    )
    return exits.done
  },
}
