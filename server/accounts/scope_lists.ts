import { z } from 'zod'
import { delegableAreas, isScope } from '#server/http/scopes.ts'

/** Scopes of a service account or an operator token. */
export const Scopes = z
  .array(
    z
      .string()
      .max(100, 'is too long')
      .refine(
        (scope) => isScope(scope, delegableAreas),
        'must be <area>:read, <area>:write, *:read or *:write of an area that may be delegated',
      ),
  )
  .min(1, 'must have at least one scope')
  .max(100, 'must have at most 100 scopes')
