import { randomUUID } from 'node:crypto'
import { createClient } from '@supabase/supabase-js'
import type { Harness, Project } from '#test/support/harness.ts'

export const text = { contentType: 'text/plain' }
export const codeOf = (error: unknown) => (error as { code?: string } | null)?.code

/** The published client over a project: with the server key, or as a user, at the root of the project. */
export const storageOf = (harness: Harness, project: Project, session?: string) =>
  createClient(
    `${harness.url}/p/${project.id}`,
    session ? project.clientKey : project.serverKey,
    session ? { accessToken: async () => session } : {},
  ).storage

type Server = ReturnType<typeof storageOf>
export type Bucket = { readonly name: string; readonly server: ReturnType<Server['from']> }

/** A new bucket, and the server key's view of it. */
export const newBucket = async (
  server: Server,
  settings: Parameters<Server['createBucket']>[1] = { public: false },
) => {
  const name = `bucket-${randomUUID().slice(0, 8)}`
  const { error } = await server.createBucket(name, settings)
  if (error) throw error
  return { name, server: server.from(name) } satisfies Bucket
}

export const textOf = async (of: Bucket['server'], path: string) => {
  const { data, error } = await of.download(path)
  return data ? data.text() : codeOf(error)
}
