import type { Client } from 'pg'
import type { SqlFile } from '#fleet/load/files.ts'
import type { DatabaseError } from '#server/database/failures.ts'

/** Postgres tells no position within the condition of a policy: the first line that has the name which it misses. */
const lineNaming = (text: string, message: string): number | '?' => {
  const [, name] = /^(?:function|column|relation|type|schema|role) "?([^\s"(]+)/.exec(message) ?? []
  const at = name === undefined ? -1 : text.split('\n').findIndex((line) => line.includes(name))
  return at < 0 ? '?' : at + 1
}

export const run = async (client: Client, file: SqlFile): Promise<void> => {
  await client.query(`select set_config('trellis.file', $1, true)`, [file.path])
  try {
    await client.query(file.text)
  } catch (error) {
    const { position, message } = error as DatabaseError & { position?: string }
    const line = position ? file.text.slice(0, Number(position)).split('\n').length : lineNaming(file.text, message)
    throw Object.assign(error as Error, { message: `${file.path}:${line}: ${message}` })
  }
}

export const remember = (client: Client, file: SqlFile) =>
  client.query(
    `insert into ops.files (path, hash) values ($1, $2)
     on conflict (path) do update set hash = excluded.hash, applied_at = now()`,
    [file.path, file.hash],
  )

export const applyPlain = async (client: Client, file: SqlFile): Promise<void> => {
  await run(client, file)
  await remember(client, file)
}
