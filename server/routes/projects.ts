import { z } from 'zod'
import { developer, projectOwner } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import { between, data, Email, Line, Text, Time, Uuid } from '#server/http/schemas.ts'
import {
  create,
  createKey,
  get,
  provisioningStatus,
  remove,
  reprovision,
  rotateKey,
} from '#server/projects/lifecycle.ts'
import { Environment, Platform, Project } from '#server/projects/shapes.ts'

const KeyType = z.enum(['client', 'server'], 'must be client or server')
const ProvisioningStatus = z.enum(['provisioning', 'ready', 'failed'])

const ApiKey = answer('api_key_json', { environment: Environment }, 'control')
const Integration = answer('integration_json', { has_credentials: z.boolean(), webhook_url: z.string().nullable() })
const NewKey = z.strictObject({ key: z.string(), prefix: z.string(), type: KeyType })
const CreatedKey = NewKey.extend({ environment: Environment })
const Step = z.strictObject({
  name: z.enum(['create_database', 'run_migrations', 'create_roles', 'seed_defaults', 'verify']),
  status: z.enum(['pending', 'running', 'succeeded', 'failed']),
  started_at: Time.nullable(),
  finished_at: Time.nullable(),
})
const Provisioning = z.strictObject({
  status: ProvisioningStatus,
  workflow_id: z.string().nullable(),
  current_step: z.string().nullable(),
  steps: z.array(Step),
  attempt: z.int(),
  is_stalled: z.boolean(),
  started_at: Time.nullable(),
  completed_at: Time.nullable(),
  error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
  data_lost_at: Time.optional(),
})

/** A web page or an app's own scheme; never a scheme that a browser would execute or that reads files. It is mailed unchanged. */
const RedirectUrl = Line(2048).refine(
  (value) => URL.canParse(value) && !/^(javascript|data|vbscript|file|blob):$/.test(new URL(value).protocol),
  'must be a URL',
)
const shared = { bundle_id: Text(255).nullable().optional(), google_oauth_client_id: Text(255).nullable().optional() }

const projectId = ({ params }: { params: Record<string, unknown> }) => ({ project_id: params['projectId'] })

export const projects = area({
  stem: 'projects',
  title: 'Projects',
  part: 'Platform',
  about: 'Projects, their keys and the state of their databases.',
  codes: 'by area',
  invalid: 'INVALID_INPUT',
  words: {
    name: ['Name', 'What your team calls it; users see it in mails.'],
    bundle_id: ['Bundle id', 'Of the app at Apple, such as `com.example.garden`: for signing in with Apple.'],
    google_oauth_client_id: ['Google client id', 'For signing in with Google.'],
    platform: ['Platform', 'Where the app runs.'],
    environment: ['Environment', 'Development allows sessions for tests and providers that only write a log.'],
    organization_id: ['Organization', 'To whom the project belongs.', { unset: 'Your own' }],
    default_from_email: ['Sender', 'The address of mails, on a domain that is verified.'],
    default_from_name: ['Name of the sender', 'Shown beside the address.'],
    default_reply_to: ['Reply to', 'The address that answers go to.'],
    magic_link_redirect_url: ['Link for signing in', 'Where mailed links lead: an address of your app.'],
    auth_email_brand_name: ['Brand', 'The name in mails for signing in.', { unset: 'The name of the project' }],
    user_search_enabled: ['Search for users', 'Users find each other by name.'],
    graphql_enabled: ['GraphQL', 'Your team queries the database by GraphQL.'],
    rest_enabled: ['REST', 'Collections are served to supabase-js and other clients of PostgREST.'],
    anonymous_reads: [
      'Reads without signing in',
      'By REST the client key alone reads public collections and public files.',
    ],
    key_type: ['Kind', 'Client keys are public and go into apps; server keys are secret.'],
    grace_seconds: [
      'Grace period',
      'Seconds for which the former key is still accepted; 0 ends it at once.',
      { default: 86_400 },
    ],
    workflow_id: ['Run id', 'An id of your own for the run.', { unset: 'One is made' }],
  },
  routes: [
    ...group('/admin/projects', developer, [
      route('POST /', 'Create a project with a client key and a server key', {
        handle: create,
        calls: ['project_create'],
        body: z.object({
          name: Line(200, 1),
          ...shared,
          platform: Platform.optional(),
          environment: Environment.optional(),
          organization_id: Uuid.optional(),
        }),
        example: { name: 'My app', environment: 'development' },
        replies: {
          201: data(
            z.strictObject({
              project: Project,
              api_keys: z.strictObject({ client: NewKey, server: NewKey }),
              provisioning_status: z.enum(['provisioning', 'failed']),
            }),
          ),
        },
        refusals: { 429: ['RATE_LIMIT_EXCEEDED'] },
      }),
      route('GET /', "Projects of the developer's organizations, or of one of them, newest first", {
        call: 'project_list',
        query: { organization_id: Uuid.optional() },
        replies: {
          200: data(
            z.array(
              Project.pick({ id: true, name: true, tier: true, effective_tier: true, comped: true, created_at: true }),
            ),
          ),
        },
      }),
    ]),
    ...group('/admin/projects/:projectId', projectOwner, [
      route('GET /', 'A project with its API keys and integrations', {
        handle: get,
        operationId: 'getProject',
        replies: { 200: data(Project.extend({ api_keys: z.array(ApiKey), integrations: z.array(Integration) })) },
        refusals: { 503: ['TENANT_UNAVAILABLE', 'TENANT_MIGRATION_PENDING'] },
      }),
      route('PATCH /', 'Change the given fields of a project', {
        call: 'project_patch',
        operationId: 'updateProject',
        body: z.object({
          name: Line(200, 1).optional(),
          ...shared,
          platform: Platform.optional(),
          environment: Environment.optional(),
          default_from_email: Email.nullable().optional(),
          default_from_name: Line(80).nullable().optional(),
          default_reply_to: Email.nullable().optional(),
          magic_link_redirect_url: RedirectUrl.nullable().optional(),
          auth_email_brand_name: Line(80).nullable().optional(),
          user_search_enabled: z.boolean('must be true or false').optional(),
          graphql_enabled: z.boolean('must be true or false').optional(),
          rest_enabled: z.boolean('must be true or false').optional(),
          anonymous_reads: z.boolean('must be true or false').optional(),
        }),
        example: { name: 'My other app' },
        patch: true,
        args: projectId,
        replies: { 200: data(z.strictObject({ id: Uuid, name: z.string(), updated_at: Time })) },
      }),
      route(
        'DELETE /',
        'Delete a project: its keys stop at once, its database and files are removed in the background',
        {
          handle: remove,
          calls: ['project_removable'],
          operationId: 'deleteProject',
          sessionOnly: true,
          rank: 'owner',
          replies: {
            200: data(
              z.strictObject({
                deleted: z.literal(true),
                file_purge: z.strictObject({ locations: z.int() }),
                subscription: z.strictObject({ ends_at: Time }).nullable(),
              }),
            ),
          },
          refusals: { 502: ['BILLING_CANCEL_FAILED', 'TENANT_RESOURCE_DELETE_FAILED'] },
        },
      ),
    ]),
    ...group('/admin/projects/:projectId', projectOwner, [
      route('POST /api-keys', 'Create another API key; its text is shown once', {
        handle: createKey,
        rank: 'admin',
        body: z.object({ key_type: KeyType, environment: Environment }),
        example: { key_type: 'client', environment: 'production' },
        replies: { 201: data(CreatedKey) },
      }),
      route('POST /api-keys/:keyId/rotate', 'Replace an API key; the former one is accepted for a while', {
        handle: rotateKey,
        calls: ['api_key_to_rotate', 'api_key_rotate'],
        operationId: 'rotateApiKey',
        rank: 'admin',
        description:
          'The new key has the type and the environment of the former one, and its text is shown once. The former key is refused from `expires_at` on, ' +
          'which the list of keys shows. A key that is deactivated or was rotated already is 409 `CONFLICT`.',
        body: z.object({ grace_seconds: between(0, 2_592_000).optional() }),
        example: { grace_seconds: 3600 },
        replies: { 201: data(CreatedKey) },
      }),
      route('DELETE /api-keys/:keyId', 'Deactivate an API key at once', {
        call: 'api_key_deactivate',
        operationId: 'revokeApiKey',
        rank: 'admin',
        args: projectId,
        replies: { 200: data(ApiKey) },
      }),
      route('GET /provisioning-status', "The progress of creating the project's database", {
        handle: provisioningStatus,
        operationId: 'getProvisioningStatus',
        replies: { 200: data(Provisioning) },
        codes: 'by area',
      }),
      route(
        'POST /reprovision',
        "Create the project's database again: from the first step that failed, or an empty one if it was lost",
        {
          handle: reprovision,
          operationId: 'reprovisionProject',
          body: z.object({ workflow_id: Text(200, 1).optional() }),
          replies: {
            202: data(
              z.strictObject({
                provisioning_status: z.literal('provisioning'),
                workflow_id: z.string(),
                attempt: z.int(),
                data_lost: z.literal(true).optional(),
              }),
            ),
          },
          refusals: { 409: ['ALREADY_PROVISIONED', 'ALREADY_RUNNING'], 503: ['TENANT_UNAVAILABLE'] },
          failure: 'UPDATE_FAILED',
        },
      ),
    ]),
  ],
})
