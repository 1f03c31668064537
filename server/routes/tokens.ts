import { z } from 'zod'
import { dataOf, type Reply } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { developer } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { Deleted, data, Line, Page, page, Uuid } from '#server/http/schemas.ts'
import { isScope, scopeAreas } from '#server/http/scopes.ts'
import { createPersonalToken } from '#server/http/tokens.ts'

const Token = answer(
  'developer_token_json',
  { scopes: z.array(z.string()), project_ids: z.array(Uuid).nullable() },
  'control',
)
const WithText = data(Token.extend({ token: z.string() }))

/** The text of a token is in this response only. */
const withText = async (call: Promise<Reply>, token: string) => {
  const reply = await call
  return { status: reply.status, body: JSON.stringify({ data: { ...dataOf<object>(reply), token } }) }
}

const create = (context: HandlerContext) => {
  const known = scopeAreas(context.services.areas)
  const unknown = (context.body['scopes'] as string[]).findIndex((scope) => !isScope(scope, known))
  if (unknown >= 0) {
    const field = `scopes.${unknown}`
    const reason = 'must be <area>:read, <area>:write, *:read or *:write of an area that there is'
    throw refusal(400, 'VALIDATION_ERROR', `${field}: ${reason}`, { field, reason })
  }
  const { text, ...stored } = createPersonalToken()
  return withText(context.call('token_create', { ...context.body, ...stored }), text)
}

const rotate = (context: HandlerContext) => {
  const { text, ...stored } = createPersonalToken()
  return withText(context.call('token_rotate', { token_id: context.params['tokenId'], ...stored }), text)
}

const lifetime = 'must be a whole number of 1 to 365, or null'

export const tokens = area({
  stem: 'tokens',
  title: 'Personal access tokens',
  part: 'Platform',
  about: 'Tokens with scopes, for programs that act for a developer.',
  source: 'supplement',
  routes: [
    ...group('/admin/tokens', developer, [
      route('POST /', 'Create a personal access token; its text is shown once', {
        handle: create,
        calls: ['token_create'],
        operationId: 'createAccessToken',
        sessionOnly: true,
        body: z.object({
          name: Line(80, 1),
          scopes: z
            .array(z.string().max(100, 'is too long'))
            .min(1, 'must have at least one scope')
            .max(100, 'must have at most 100 scopes')
            .default(['*:write']),
          project_ids: z
            .array(Uuid)
            .min(1, 'must name at least one project, or be null')
            .max(200, 'must name at most 200 projects')
            .nullable()
            .default(null),
          expires_in_days: z.int(lifetime).min(1, lifetime).max(365, lifetime).nullable().default(90),
        }),
        example: { name: 'Deployment', scopes: ['streaks:write', '*:read'], expires_in_days: 30 },
        replies: { 201: WithText },
      }),
      route('GET /', "The developer's personal access tokens, newest first", {
        call: 'token_list',
        operationId: 'listAccessTokens',
        sessionOnly: true,
        query: Page,
        replies: { 200: page(Token) },
      }),
      route('DELETE /:tokenId', 'Revoke a personal access token at once', {
        call: 'token_revoke',
        operationId: 'revokeAccessToken',
        sessionOnly: true,
        replies: { 200: Deleted },
      }),
      route('POST /:tokenId/rotate', 'Rotate a personal access token; the former text stays valid for one hour', {
        handle: rotate,
        calls: ['token_rotate'],
        operationId: 'rotateAccessToken',
        sessionOnly: true,
        replies: { 200: WithText },
      }),
    ]),
  ],
})
