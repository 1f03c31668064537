import { z } from 'zod'
import { Scopes } from '#server/accounts/scope_lists.ts'
import { createOperator } from '#server/accounts/tokens.ts'
import { delegator } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { Deleted, data, Line, Page, page, Text, Time, Uuid } from '#server/http/schemas.ts'
import { sha256 } from '#server/secrets.ts'

const OperatorToken = answer(
  'operator_token_json',
  { scopes: z.array(z.string()), status: z.enum(['active', 'expired', 'revoked']) },
  'control',
)

const introspect = (context: HandlerContext) =>
  context.call('operator_token_introspect', { token_hash: sha256(context.body['token'] as string) })

const lifetime = 'must be a whole number of 60 to 7776000'

export const operatorTokens = area({
  stem: 'operator_tokens',
  title: 'Operator tokens',
  part: 'Platform',
  about: 'What a machine or an agent does on behalf of somebody, under a ceiling.',
  words: {
    project_id: ['Project', 'The id of the one project that it is for.', { unset: 'None; or an organization' }],
    organization_id: ['Organization', 'The id of the organization that it is for.', { unset: 'None; or a project' }],
    scopes: ['Scopes', 'What it may do, such as `users:read`.'],
    expires_in_seconds: ['Valid for', 'Seconds, at most 90 days.'],
    label: ['Label', 'For your records.'],
    actor: ['On behalf of', 'Who acts, for the audit trail: a name or an id of yours.'],
    token: ['Token', 'The token that is asked about.'],
  },
  routes: [
    ...group('/admin/operator-tokens', delegator, [
      route(
        'POST /',
        'Create an operator token for a project, or for all projects of an organization; its text is shown once',
        {
          handle: createOperator,
          calls: ['operator_token_create'],
          sessionOnly: true,
          body: z.object({
            project_id: Uuid.nullable().optional(),
            organization_id: Uuid.nullable().optional(),
            scopes: Scopes,
            expires_in_seconds: z.int(lifetime).min(60, lifetime).max(7_776_000, lifetime).default(3600),
            label: Line(200).nullable().optional(),
            actor: Line(200).nullable().optional(),
          }),
          example: {
            organization_id: '00000000-0000-4000-8000-000000000000',
            scopes: ['streaks:write'],
            label: 'Nightly run',
            actor: 'gardener',
          },
          replies: { 201: data(OperatorToken.extend({ token: z.string() })) },
        },
      ),
      route('GET /', 'Operator tokens that the caller made, newest first', {
        call: 'operator_token_list',
        sessionOnly: true,
        query: Page,
        replies: { 200: page(OperatorToken) },
      }),
      route('DELETE /:operatorTokenId', 'Revoke an operator token', {
        call: 'operator_token_revoke',
        sessionOnly: true,
        replies: { 200: Deleted },
      }),
      route('POST /introspect', 'What an operator token of the caller may do now; active is false for any other text', {
        handle: introspect,
        operationId: 'introspectOperatorToken',
        sessionOnly: true,
        readOnly: true,
        body: z.object({ token: Text(4096, 1) }),
        example: { token: 'svc_dop_…' },
        replies: {
          200: data(
            z.strictObject({
              active: z.boolean(),
              scopes: z.array(z.string()),
              project_id: Uuid.nullable(),
              organization_id: Uuid.nullable(),
              expires_at: Time.nullable(),
            }),
          ),
        },
      }),
    ]),
  ],
})
