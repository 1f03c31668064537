import type { IncomingMessage } from 'node:http'

const named = new WeakMap<IncomingMessage, string>()

/**
 * `{root_url}/p/<project id>` is a root as `{root_url}` is one: what is below it is the same, of this project. An address that a client makes by itself
 * and asks for without a key, as getPublicUrl() does, tells its project by that alone.
 */
export const underRoot = (request: IncomingMessage, path: string): string => {
  const [whole, projectId] =
    /^\/p\/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?=\/(?:auth|rest|storage|realtime)\/v1(?:[/?]|$))/i.exec(
      path,
    ) ?? []
  if (whole === undefined || projectId === undefined) return path
  named.set(request, projectId.toLowerCase())
  return path.slice(whole.length)
}

/** The project that the root of a request names, or undefined. */
export const namedProject = (request: IncomingMessage): string | undefined => named.get(request)
