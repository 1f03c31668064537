import { gunzipSync } from 'node:zlib'
import { Agent } from 'undici'

/** `fetch` costs several times the CPU of the request that a test makes with it. */
const agent = new Agent()

/** What fetch says of itself. */
const usual = { accept: '*/*', 'accept-language': '*', 'user-agent': 'node' }

/** One request, and its answer as text. */
export const requestText = async (
  url: string,
  { method, headers, body }: { method: string; headers: Record<string, string>; body?: string },
) => {
  const { origin, pathname, search } = new URL(url)
  const response = await agent.request({
    origin,
    path: pathname + search,
    method,
    headers: { ...usual, ...headers },
    ...(body === undefined ? {} : { body }),
  })
  const text =
    response.headers['content-encoding'] === 'gzip'
      ? gunzipSync(await response.body.bytes()).toString()
      : await response.body.text()
  return { status: response.statusCode, received: response.headers, text }
}
