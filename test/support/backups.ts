import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { root } from '#server/root.ts'
import { ask, programEnvironment } from '#test/support/process.ts'
import { runFolder, runVariable } from '#test/support/run.ts'

export type Ended = { readonly code: number | string; readonly output: string }

/** Begins `npm run backup` or `npm run restore`, with these variables and no others. */
export const begin = async (script: 'backup' | 'restore', env: Record<string, string>, args: readonly string[]) => {
  const folder = await runFolder()
  const child = spawn(process.execPath, [join(root, `scripts/${script}.ts`), ...args], {
    env: { ...programEnvironment, [runVariable]: folder, TMPDIR: folder, ...env },
    detached: true,
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += String(chunk)
    })
  const ended = once(child, 'close').then(([code, signal]) => ({ code: (code ?? signal) as number | string, output }))
  return { child, ended }
}

export const run = async (
  script: 'backup' | 'restore',
  env: Record<string, string>,
  ...args: readonly string[]
): Promise<Ended> => (await begin(script, env, args)).ended

type Headers = Record<string, string>

/** Posts one event under an id, and answers whether it was accepted. */
export const post = async (url: string, user: Headers, id: string): Promise<boolean> =>
  (await ask(url, 'POST', '/v1/client/events', { event_name: 'counted', id }, user).catch(() => null))?.status === 201

/** Which of these events a server does not have; it has them afterwards. */
export const missing = async (url: string, user: Headers, ids: readonly string[]): Promise<number> => {
  let accepted = 0
  for (let from = 0; from < ids.length; from += 500) {
    const events = ids.slice(from, from + 500).map((id) => ({ event_name: 'counted', id }))
    const { body } = await ask(url, 'POST', '/v1/client/events', { events }, user)
    accepted += body.data.accepted
  }
  return accepted
}

/** A user of a project: their headers. */
type Story = { readonly user: Headers }

/** Uploads and commits a file; answers its id. */
export const uploadFile = async (url: string, { user }: Story, bytes: Buffer): Promise<string> => {
  const file = { filename: 'a.bin', mime_type: 'application/octet-stream', size_bytes: bytes.length }
  const { body } = await ask(url, 'POST', '/v1/client/media/upload', file, user)
  const headers = { 'content-type': file.mime_type }
  const stored = await fetch(body.upload_url, { method: 'PUT', body: new Uint8Array(bytes), headers })
  if (!stored.ok) throw new Error(`the upload was answered ${stored.status}`)
  const { id } = body.data
  const committed = await ask(url, 'POST', '/v1/client/media/commit', { upload_id: id, asset_id: id }, user)
  if (committed.status !== 200) throw new Error(JSON.stringify(committed.body))
  return id
}

/** The bytes of a file; null when it is not known. */
export const download = async (url: string, { user }: Story, id: string): Promise<Buffer | null> => {
  const { status, body } = await ask(url, 'GET', `/v1/client/media/${id}`, undefined, user)
  if (status !== 200) return null
  const response = await fetch(body.data.storage_url)
  if (!response.ok) throw new Error(`the file was answered ${response.status}`)
  return Buffer.from(await response.arrayBuffer())
}
