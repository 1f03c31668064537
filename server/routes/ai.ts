import { z } from 'zod'
import { allowsEcho } from '#server/ai/calls.ts'
import { evaluate } from '#server/ai/evaluate.ts'
import { invoke } from '#server/ai/invoke.ts'
import { putProvider } from '#server/ai/keys.ts'
import { embeddings, forward } from '#server/ai/native.ts'
import { AdminInvocation, ClientInvocation, Evaluation } from '#server/ai/requests.ts'
import { administrator, endUser } from '#server/http/callers.ts'
import { area, route } from '#server/http/route.ts'
import { between, Cursor, cursorPage, Deleted, data, Limit, Page, page, Uuid } from '#server/http/schemas.ts'
import { orEventStream } from '#server/http/stream.ts'
import {
  Budget,
  EmbeddingsRequest,
  Evaluated,
  InvocationRow,
  Invoked,
  NativeMessage,
  NewBudget,
  NewPrompt,
  Period,
  Prompt,
  PromptName,
  Provider,
  ProviderName,
  Spend,
  Version,
  WrittenPrompt,
} from '#server/routes/ai/shapes.ts'

const base = '/admin/projects/:projectId/ai' as const
const prompt = `${base}/prompts/:name` as const
const upstream = { 502: ['PROVIDER_FAILED', 'PROVIDER_TIMEOUT'] }
const hello = { messages: [{ role: 'user', content: 'Hello' }] }

const Variables = z.array(z.string())
const PromptForApps = z.strictObject({
  name: z.string(),
  description: z.string().nullable(),
  variables: Variables,
  cost: z.strictObject({ currency_code: z.string(), amount: z.int() }).nullable(),
})

export const ai = area({
  stem: 'ai',
  title: 'AI',
  part: 'Content',
  about: 'Prompts, invocations of models, budgets and spending.',
  source: 'contract',
  routes: [
    route(`POST ${base}/providers`, {
      caller: administrator,
      rank: 'admin',
      summary: 'Register a provider, or replace its key',
      body: z.object({
        name: ProviderName,
        api_key: z
          .string('must be a string')
          .regex(/^[\x21-\x7e]{1,500}$/, 'must be 1 to 500 characters of ASCII without spaces'),
      }),
      example: { name: 'openai', api_key: 'sk-example' },
      handle: putProvider,
      replies: { 200: data(Provider), 201: data(Provider) },
    }),
    route(`GET ${base}/providers`, {
      caller: administrator,
      neverDelegated: true,
      summary: 'The registered providers, without their keys',
      call: 'ai_provider_list',
      replies: { 200: data(z.array(Provider)) },
    }),
    route(`DELETE ${base}/providers/:name`, {
      caller: administrator,
      rank: 'admin',
      summary: 'Revoke a provider that no prompt uses',
      call: 'ai_provider_delete',
      replies: { 200: Deleted },
    }),
    route(`POST ${base}/prompts`, {
      caller: administrator,
      summary: 'Register a prompt, or its next version; at most 500',
      description:
        'The version replaces the whole configuration: fields that are not sent have their defaults. The budget stays.',
      body: NewPrompt,
      patch: true,
      example: {
        name: 'greeter',
        provider: 'openai',
        model: 'gpt-4o-mini',
        system_prompt: 'Greet {{user.display_name}}.',
      },
      args: (context) => ({ allows_echo: allowsEcho(context) }),
      call: 'ai_prompt_put',
      replies: { 200: WrittenPrompt },
      failure: 'CREATE_FAILED',
    }),
    route(`GET ${base}/prompts`, {
      caller: administrator,
      summary: 'Prompts with their full configuration, by name',
      query: Page,
      call: 'ai_prompts',
      replies: { 200: page(Prompt) },
    }),
    route(`GET ${prompt}`, {
      caller: administrator,
      summary: 'A prompt with its full configuration',
      call: 'ai_prompt_get',
      replies: { 200: data(Prompt) },
    }),
    route(`DELETE ${prompt}`, {
      caller: administrator,
      summary: 'Delete a prompt with its versions, budget and spend',
      call: 'ai_prompt_delete',
      replies: { 200: data(z.strictObject({ name: PromptName })) },
    }),
    route(`POST ${prompt}/invoke`, {
      caller: administrator,
      summary: 'Invoke a prompt, also one that apps may not invoke',
      description:
        'With `stream: true` the response is a stream of server-sent events: `delta` {text}, then `done` {usage} or `error` {code, message}.',
      body: AdminInvocation,
      example: hello,
      handle: invoke(false),
      replies: { 200: orEventStream(Invoked) },
      refusals: {
        402: ['SPEND_CEILING_REACHED'],
        409: ['PROVIDER_NOT_REGISTERED'],
        422: ['ai_model_not_multimodal'],
        429: ['ai_budget_exceeded'],
        502: ['PROVIDER_FAILED', 'PROVIDER_TIMEOUT'],
      },
      failure: 'CREATE_FAILED',
    }),
    route(`GET ${prompt}/budget`, {
      caller: administrator,
      summary: 'The budget of a prompt and what is left of it',
      call: 'ai_budget_get',
      replies: { 200: Budget },
    }),
    route(`PUT ${prompt}/budget`, {
      caller: administrator,
      summary: 'Set or clear the budget of a prompt',
      body: NewBudget,
      patch: true,
      example: { budget_usd: 25, budget_period: 'monthly' },
      call: 'ai_budget_put',
      replies: { 200: Budget },
    }),
    route(`GET ${prompt}/spend`, {
      operationId: 'getAiPromptSpend',
      caller: administrator,
      summary: 'What a prompt has cost today, this month or in all (UTC)',
      query: { period: Period.optional() },
      call: 'ai_spend',
      replies: { 200: Spend },
    }),
    route(`POST ${base}/messages`, {
      operationId: 'sendAiMessages',
      caller: administrator,
      summary: "Forward a body in the provider's own format",
      description:
        "The response is the provider's own, with its status, and a stream where the body asks for one; this API's envelope where the provider did not answer. " +
        "Google's model is named by `body.model`.",
      body: NativeMessage,
      example: { provider: 'openai', body: { model: 'gpt-4o-mini', ...hello } },
      handle: forward,
      relays: true,
      replies: { 200: z.unknown() },
      refusals: { 402: ['SPEND_CEILING_REACHED'], 409: ['PROVIDER_NOT_REGISTERED'], ...upstream },
      failure: 'CREATE_FAILED',
    }),
    route(`POST ${base}/embeddings`, {
      operationId: 'createAiEmbeddings',
      caller: administrator,
      summary: 'Embeddings of texts, by OpenAI',
      body: EmbeddingsRequest,
      example: { provider: 'openai', model: 'text-embedding-3-small', input: 'Hello' },
      handle: embeddings,
      replies: {
        200: data(
          z.strictObject({
            embeddings: z.array(z.array(z.number())),
            usage: z.strictObject({ prompt_tokens: z.int(), total_tokens: z.int() }),
          }),
        ),
      },
      refusals: { 402: ['SPEND_CEILING_REACHED'], 409: ['PROVIDER_NOT_REGISTERED'], ...upstream },
      failure: 'CREATE_FAILED',
    }),
    route(`GET ${base}/invocations`, {
      caller: administrator,
      source: 'supplement',
      summary: 'Calls of providers, newest first; kept for 90 days',
      query: {
        prompt: z.string().max(128).optional(),
        user_id: Uuid.optional(),
        status: InvocationRow.shape.status.optional(),
        cursor: Cursor,
        limit: Limit(),
      },
      call: 'ai_invocations',
      replies: { 200: cursorPage(InvocationRow) },
    }),
    route(`GET ${prompt}/versions`, {
      caller: administrator,
      source: 'supplement',
      summary: 'Versions of a prompt, newest first; the newest 1000 are kept',
      query: Page,
      call: 'ai_prompt_versions',
      replies: { 200: page(Version) },
    }),
    route(`POST ${prompt}/rollback`, {
      caller: administrator,
      source: 'supplement',
      summary: 'Make a former version of a prompt its next one',
      body: z.object({ version: between(1, 2_000_000_000) }),
      example: { version: 1 },
      args: (context) => ({ allows_echo: allowsEcho(context) }),
      call: 'ai_prompt_rollback',
      replies: { 200: WrittenPrompt },
    }),
    route(`POST ${prompt}/evaluate`, {
      caller: administrator,
      source: 'supplement',
      summary: 'Run cases against a prompt: how many pass, and what they cost',
      body: Evaluation,
      example: { cases: [{ ...hello, expect: { contains: 'Hello' } }] },
      handle: evaluate,
      replies: { 200: Evaluated },
      failure: 'CREATE_FAILED',
    }),
    route('GET /client/ai/prompts', {
      caller: endUser,
      source: 'supplement',
      summary: 'The prompts that apps may invoke',
      call: 'ai_client_prompts',
      replies: { 200: data(z.array(PromptForApps)) },
    }),
    route('POST /client/ai/prompts/:name/invoke', {
      caller: endUser,
      source: 'supplement',
      summary: 'Invoke a prompt',
      description:
        'With `stream: true` the response is a stream of server-sent events: `delta` {text}, then `done` {usage} or `error` {code, message}.',
      body: ClientInvocation,
      example: hello,
      handle: invoke(true),
      replies: { 200: orEventStream(Invoked) },
      refusals: {
        400: ['CONTENT_REJECTED'],
        402: ['SPEND_CEILING_REACHED'],
        403: ['USER_MUTED'],
        404: ['NOT_FOUND'],
        409: ['INSUFFICIENT_FUNDS', 'PROVIDER_NOT_REGISTERED'],
        422: ['ai_model_not_multimodal'],
        429: ['ai_budget_exceeded'],
        502: ['PROVIDER_FAILED', 'PROVIDER_TIMEOUT'],
      },
      failure: 'CREATE_FAILED',
    }),
    route('GET /client/ai/usage', {
      caller: endUser,
      source: 'supplement',
      summary: "The caller's own calls and tokens today (UTC)",
      call: 'ai_usage',
      replies: {
        200: data(z.strictObject({ date: z.string(), calls: z.int(), input_tokens: z.int(), output_tokens: z.int() })),
      },
    }),
  ],
})
