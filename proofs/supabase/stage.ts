import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import type { createClient as Create } from '@supabase/supabase-js'
import { tenantName } from '#server/database/names.ts'
import { ask, createTestProject, temporaryFolder } from '#test/support/process.ts'
import { type Client, githubProvider, githubRedirects, type World } from '#test/support/supabase_cases/case.ts'
import { collections, fill, functions, untilCallable } from '#test/support/supabase_cases/rows_stage.ts'
import { asAdmin, type Installation } from '../../bench/support/installation.ts'

export type Published = {
  readonly version: string
  readonly createClient: typeof Create
  /** A file beside which the packages are found. */
  readonly beside: string
}

/** The clients of our lockfile, or of npm: `latest`, or a version. */
export const published = async (wanted: string | undefined): Promise<Published> => {
  let beside = import.meta.filename
  if (wanted !== undefined) {
    const folder = await temporaryFolder()
    const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', folder]
    await promisify(execFile)('npm', [...args, `@supabase/supabase-js@${wanted}`])
    beside = join(folder, 'node_modules/beside.js')
  }
  const require = createRequire(beside)
  const { createClient } = (await import(pathToFileURL(require.resolve('@supabase/supabase-js')).href)) as {
    createClient: typeof Create
  }
  const { version } = require('@supabase/supabase-js/package.json') as { version: string }
  return { version, createClient, beside }
}

export const password = 'correct horse 42 battery'

/** The last code that was mailed to an address: without an SMTP server mails are files. */
const codeFor = async (folder: string, email: string): Promise<string> => {
  for (let tries = 0; tries < 200; tries += 1) {
    const names = (await readdir(folder).catch(() => [])).filter((name) => name.includes(email)).sort()
    for (const name of names.reverse()) {
      const code = /^(\d{6})\s*$/m.exec(await readFile(join(folder, name), 'utf8'))?.[1]
      if (code) return code
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`no code was mailed to ${email}`)
}

/** A project with what the calls need: collections with rows, and a client that a user has signed in with. */
export const openStage = async (
  installation: Installation,
  { createClient }: Published,
): Promise<World & { readonly end: () => Promise<void> }> => {
  const server = await installation.serve()
  const { projectId, developer, key, serverKey } = await createTestProject(server.url)
  const admin = `/v1/admin/projects/${projectId}`
  await ask(server.url, 'PATCH', admin, { rest_enabled: true }, developer)
  for (const collection of collections) await ask(server.url, 'POST', `${admin}/collections`, collection, developer)
  await ask(server.url, 'PUT', `${admin}/oauth/providers/github`, githubProvider, developer)
  await ask(server.url, 'PUT', `${admin}/oauth/redirects`, githubRedirects, developer)
  const made: Client[] = []
  const withKey = (apiKey: string, flowType: 'implicit' | 'pkce' = 'implicit'): Client => {
    const client = createClient(`${server.url}/p/${projectId}`, apiKey, {
      auth: { flowType, autoRefreshToken: false, persistSession: false },
    })
    made.push(client)
    return client
  }
  const fresh: World['fresh'] = (flowType) => withKey(key['x-api-key'], flowType)
  const all = withKey(serverKey)
  const signUp = async () => {
    const client = fresh()
    const email = `${crypto.randomUUID()}@example.org`
    const { error } = await client.auth.signUp({ email, password })
    if (error) throw error
    return { client, email }
  }
  const { client, email } = await signUp()
  await fill(client)
  await asAdmin(installation.cluster, tenantName('trellis', projectId), `set role trellis_owner; ${functions}`)
  await untilCallable(client)
  return {
    client,
    fresh,
    email,
    password,
    peer: async () => (await signUp()).client,
    code: (address: string) => codeFor(join(server.dataDir, 'mail'), address),
    async end() {
      for (const one of made) {
        await one.removeAllChannels()
        await one.realtime.disconnect()
      }
    },
    server: all,
    async publicFile() {
      const place = { name: `public-${crypto.randomUUID()}`, path: 'a.txt' }
      await all.storage.createBucket(place.name, { public: true })
      await all.storage.from(place.name).upload(place.path, 'hello', { contentType: 'text/plain' })
      return place
    },
    own: async () => `user/${(await client.auth.getUser()).data.user?.id}`,
  }
}
