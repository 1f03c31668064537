import { z } from 'zod'
import { Line } from '#server/http/schemas.ts'
import { parseAddress } from '#server/providers/mail.ts'

export const TemplateKey = z.string().regex(/^[a-z][a-z0-9_.-]{0,127}$/, 'must match ^[a-z][a-z0-9_.-]{0,127}$')
/** `transactional`, or what users can unsubscribe from. */
export const Category = z.string().regex(/^[a-z][a-z0-9_-]{0,63}$/, 'must match ^[a-z][a-z0-9_-]{0,63}$')

/** Becomes part of a mail header: a line break would begin another header. */
export const From = Line(400).refine(
  (value) => parseAddress(value) !== null,
  'must be a mail address, or Name <mail address>',
)
