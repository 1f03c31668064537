import type { FastifyRequest } from 'fastify'
import { Negotiator } from 'negotiator'

/**
 * The one of these encodings in which a client wants an answer, by Accept-Encoding: of several that it wants equally the first. Undefined where it is to
 * be as it is. RFC 9110, 12.5.3.
 */
export const encodingOf = <Name extends string>(
  { headers }: Pick<FastifyRequest, 'headers'>,
  packed: readonly Name[],
): Name | undefined => {
  const wanted = new Negotiator({ headers }).encoding([...packed, 'identity'], { preferred: packed })
  return packed.find((name) => name === wanted)
}
