import type { FastifyRequest } from 'fastify'
import { Negotiator } from 'negotiator'

const tag = /^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}$/
const most = 10

/** acceptedLocales as an array of Postgres: no tag holds a character that would need quotes. */
export const acceptedArray = (request: Pick<FastifyRequest, 'headers'>): string =>
  `{${acceptedLocales(request).join(',')}}`

/** The languages of Accept-Language, most wanted first: at most ten, those that are refused (q=0) and `*` left out. RFC 9110, 12.5.4. */
export const acceptedLocales = ({ headers }: Pick<FastifyRequest, 'headers'>): string[] =>
  new Negotiator({ headers: { 'accept-language': headers['accept-language']?.slice(0, 500) } })
    .languages()
    .filter((locale) => tag.test(locale))
    .slice(0, most)
