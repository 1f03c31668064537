import { z } from 'zod'
import { createToken, rotateToken } from '#server/accounts/tokens.ts'
import { developer } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import { Deleted, data, Line, Page, page, Uuid } from '#server/http/schemas.ts'

const Token = answer(
  'developer_token_json',
  { scopes: z.array(z.string()), project_ids: z.array(Uuid).nullable() },
  'control',
)
const WithText = data(Token.extend({ token: z.string() }))

const lifetime = 'must be a whole number of 1 to 365, or null'

export const tokens = area({
  stem: 'tokens',
  title: 'Personal access tokens',
  part: 'Platform',
  about: 'Tokens with scopes, for programs that act for a developer.',
  words: {
    name: ['Name', 'What the token is for, such as `Deployment`.'],
    scopes: ['Scopes', 'What it may do, such as `streaks:write`.'],
    project_ids: ['Projects', 'The ids of the only projects that it reaches.', { unset: 'All of yours' }],
    expires_in_days: ['Valid for', 'Days, at most 365; null is for ever.'],
  },
  routes: [
    ...group('/admin/tokens', developer, [
      route('POST /', 'Create a personal access token; its text is shown once', {
        handle: createToken,
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
        handle: rotateToken,
        calls: ['token_rotate'],
        operationId: 'rotateAccessToken',
        sessionOnly: true,
        replies: { 200: WithText },
      }),
    ]),
  ],
})
