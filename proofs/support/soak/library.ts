// A project that has something of everything, in which every route that reads is asked, and every page, filter and preview of bench:scale.
import { randomInt } from 'node:crypto'
import { type Cluster, connectAdmin } from '#server/database/cluster.ts'
import { tenantName } from '#server/database/names.ts'
import { fillProject } from '../../../bench/support/scale_fill.ts'
import { type Call, documented, knownOf, special } from '../../../bench/support/scale_routes.ts'
import type { Caller, Headers } from './caller.ts'
import type { Made } from './project.ts'

const size = 1000

export type Library = { readonly calls: readonly Call[]; readonly headers: Readonly<Record<Call['as'], Headers>> }

export const fillLibrary = async (cluster: Cluster, caller: Caller, made: Made): Promise<Library> => {
  const admin = await connectAdmin(cluster, tenantName('trellis', made.projectId), false)
  try {
    await fillProject(admin, size, () => undefined)
    const known = await knownOf(admin, made.projectId, size)
    const { body } = await caller.insist('GET', '/v1/openapi.json')
    // what is heavy changes many users at once
    const calls = [...documented(body, known).calls, ...special(known)].filter(({ kind }) => kind !== 'heavy')
    const user = { 'x-api-key': made.serverKey, 'x-on-behalf-of': known.userId }
    return { calls, headers: { user, session: made.user, developer: made.developer } }
  } finally {
    await admin.end()
  }
}

export const readSomething = async (caller: Caller, { calls, headers }: Library): Promise<void> => {
  const call = calls[randomInt(calls.length)] as Call
  await caller.ask(call.method, `/v1${call.path}`, call.body, headers[call.as])
}
