import type { Harness, Project } from '#test/support/harness.ts'

const encoded = (fields: Readonly<Record<string, string>>) =>
  Object.entries(fields)
    .map(([name, value]) => `${name} ${Buffer.from(value).toString('base64')}`)
    .join(',')

/** Requests of the protocol of resumable uploads, by hand, with a session or with the server key. */
export const tusOf = (harness: Harness, project: Project, session: string | null) => {
  const endpoint = `${harness.url}/storage/v1/upload/resumable`
  const credentials: Record<string, string> = session
    ? { apikey: project.clientKey, authorization: `Bearer ${session}` }
    : { apikey: project.serverKey }
  const ask = async (method: string, url: string, headers: Record<string, string> = {}, body?: string | Buffer) => {
    const answer = await fetch(url, {
      method,
      headers: { 'tus-resumable': '1.0.0', ...credentials, ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : new Uint8Array(body) }),
    })
    const text = await answer.text()
    return {
      status: answer.status,
      code: text.startsWith('{') ? (JSON.parse(text) as { code: string }).code : '',
      url: answer.headers.get('location') ?? '',
      offset: answer.headers.get('upload-offset'),
    }
  }
  const create = (key: string, size: number | string, headers: Record<string, string> = {}, bucketName = 'media') =>
    ask('POST', endpoint, {
      'upload-length': String(size),
      'upload-metadata': encoded({ bucketName, objectName: key, contentType: 'text/plain' }),
      ...headers,
    })
  const patch = (url: string, offset: number | string, body: string | Buffer, headers: Record<string, string> = {}) =>
    ask('PATCH', url, { 'upload-offset': String(offset), 'content-type': offsetType, ...headers }, body)
  return { endpoint, credentials, ask, create, patch, at: (url: string) => ask('HEAD', url) }
}

export const offsetType = 'application/offset+octet-stream'
export const upsert = { 'x-upsert': 'true' }
