import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Answer, Client, Harness, Project } from '#test/support/harness.ts'

/** A request to a signed URL, by a client that has nothing but the URL. */
export const put = (
  url: string,
  body: string | Uint8Array<ArrayBuffer> | ReadableStream,
  type = 'text/plain',
  headers: Record<string, string> = {},
) =>
  fetch(url, {
    method: 'PUT',
    body,
    headers: { 'content-type': type, ...headers },
    redirect: 'manual',
    ...(body instanceof ReadableStream ? { duplex: 'half' as const } : {}),
  })

export type Registered = { readonly id: string; readonly uploadUrl: string; readonly answer: Answer }

export const register = async (client: Client, more: Record<string, unknown> = {}): Promise<Registered> => {
  const answer = await client.post('/client/media/upload', {
    filename: 'a.txt',
    mime_type: 'text/plain',
    size_bytes: 5,
    ...more,
  })
  expect(answer.status, answer.text).toBe(201)
  return { id: answer.data.id, uploadUrl: answer.body.upload_url, answer }
}

export const commit = (client: Client, id: string) =>
  client.post('/client/media/commit', { upload_id: id, asset_id: id })

/** A committed file of a user. */
export const upload = async (client: Client, bytes: string | Buffer = 'hello', more: Record<string, unknown> = {}) => {
  const { id, uploadUrl } = await register(client, { size_bytes: Buffer.byteLength(bytes), ...more })
  const type = String(more['mime_type'] ?? 'text/plain')
  const stored = await put(uploadUrl, typeof bytes === 'string' ? bytes : new Uint8Array(bytes), type)
  expect(stored.status, await stored.text()).toBe(200)
  const { status, data, text } = await commit(client, id)
  expect(status, text).toBe(200)
  return data as { id: string; key: string; storage_url: string; size_bytes: number } & Record<string, any>
}

/** Puts a project on a tier, as the operator does. */
export const setTier = async (harness: Harness, project: Project, tier: 'free' | 'pro') => {
  await harness.control('select internal.operator_project_set($1, $2)', [project.id, tier])
  harness.running.services.projectCache.clear()
}

/** Names of all files that are stored for a project. */
export const storedOf = async (harness: Harness, project: Project): Promise<string[]> => {
  const folder = join(harness.running.services.config.DATA_DIR, 'media', project.id)
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort()
}

/** The status and the code of an answer to a signed URL. */
export const refusedWith = async (answer: Response) => {
  const text = await answer.text()
  return [answer.status, (JSON.parse(text) as { error: { code: string } }).error.code]
}

export const presign = (client: Client, key: string, more: Record<string, unknown> = {}) =>
  client.post('/client/media/presign', { bucket: 'media', key, method: 'GET', ...more })
export const presignPut = (client: Client, key: string, more: Record<string, unknown> = {}) =>
  presign(client, key, { method: 'PUT', content_type: 'text/plain', ...more })
/** What a URL leads to. */
export const textOf = async (url: string, headers: Record<string, string> = {}) => {
  const answer = await fetch(url, { headers })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}
