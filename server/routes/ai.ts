import { z } from 'zod'
import { allowsEcho } from '#server/ai/calls.ts'
import { evaluate } from '#server/ai/evaluate.ts'
import { invoke } from '#server/ai/invoke.ts'
import { putProvider } from '#server/ai/keys.ts'
import { embeddings, forward } from '#server/ai/native.ts'
import { AdminInvocation, ClientInvocation, Evaluation } from '#server/ai/requests.ts'
import { administrator, endUser } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import {
  between,
  Cursor,
  cursorPage,
  Deleted,
  data,
  IncludeUser,
  Limit,
  Page,
  page,
  Uuid,
  withUser,
} from '#server/http/schemas.ts'
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
  codes: 'by area',
  words: {
    name: ['Name', 'The name in calls, such as `greeter`.'],
    'providers.name': ['Provider', 'Whose models are called.'],
    provider: ['Provider', 'Whose model is called.'],
    api_key: ['Key', 'A key of the provider; it is stored encrypted and not shown again.'],
    model: ['Model', 'As the provider names it.'],
    system_prompt: [
      'System prompt',
      'What the model is told first; marks such as `{{user.display_name}}` are filled in.',
    ],
    max_tokens: ['Longest answer', 'In tokens, about four characters each.', { unset: 'As the prompt says' }],
    rate_limit: ['Rate limit', 'How often it may be called.', { unset: 'No limit' }],
    'rate_limit.window': ['Seconds', 'In how many seconds.'],
    'rate_limit.max': ['Calls', 'How many calls.'],
    'rate_limit.key': ['Per', 'Each user, each address, or the whole project.'],
    client_invokable: ['Apps may call it', 'Otherwise only administrators.'],
    log_payloads: ['Keep texts', 'The log has what was asked and answered.'],
    cost: ['Costs the user', 'An amount of a currency for each call.', { unset: 'Nothing' }],
    'cost.amount': ['Amount', 'For each call.'],
    context: ['Context', 'Values for the marks of the prompt, such as `{"place": "Paris"}`.'],
    stream: ['Stream', 'The answer comes piece by piece.'],
    response_format: ['Form of the answer', 'Text, JSON, or JSON by a schema.', { unset: 'Text' }],
    'response_format.type': ['Form', 'Text, JSON, or JSON by a schema.'],
    'response_format.json_schema': ['Schema', 'A JSON Schema with a name.'],
    'json_schema.name': ['Name', 'What the schema is called, such as `answer`.'],
    'json_schema.schema': ['Schema', 'A JSON Schema of the answer.'],
    'json_schema.strict': ['Strict', 'The provider enforces the schema.', { unset: 'As the provider does' }],
    messages: ['Messages', 'The conversation, oldest first.'],
    'messages.role': ['From', 'The user, the model, or instructions of an administrator.'],
    'messages.content': ['Content', 'A text, or parts with texts and pictures.'],
    'content.type': ['Kind', 'A text or a picture.'],
    'content.text': ['Text', 'What is said.'],
    'content.image_url': ['Picture', 'Where it is.'],
    'image_url.url': ['Address', 'An https address or a data URL.'],
    'image_url.detail': ['Detail', 'How closely it is looked at.', { unset: 'As the provider does' }],
    budget_usd: ['Budget', 'In US dollars; null ends the budget.'],
    budget_period: ['Per', 'A day, a month, or in all.', { unset: 'As it is' }],
    body: ['Request', 'As the provider takes it.'],
    input: ['Texts', 'One text, or up to 2048.'],
    version: ['Version', 'The version to go back to.'],
    runs: ['Runs', 'How often each case is tried.'],
    cases: ['Cases', 'What is asked, and what is expected.'],
    'cases.expect': ['Expected', 'What the answer must be like.'],
    'expect.contains': ['Contains', 'A text that is in the answer.'],
    'expect.regex': ['Pattern', 'A regular expression that the answer matches.'],
    'expect.json_schema': ['Schema', 'A JSON Schema that the answer obeys.'],
  },
  routes: [
    ...group('/admin/projects/:projectId/ai', administrator, [
      route('POST /providers', 'Register a provider, or replace its key', {
        handle: putProvider,
        rank: 'admin',
        body: z.object({
          name: ProviderName,
          api_key: z
            .string('must be a string')
            .regex(/^[\x21-\x7e]{1,500}$/, 'must be 1 to 500 characters of ASCII without spaces'),
        }),
        example: { name: 'openai', api_key: 'sk-example' },
        replies: { 200: data(Provider), 201: data(Provider) },
      }),
      route('GET /providers', 'The registered providers, without their keys', {
        call: 'ai_provider_list',
        neverDelegated: true,
        replies: { 200: data(z.array(Provider)) },
      }),
      route('DELETE /providers/:name', 'Revoke a provider that no prompt uses', {
        call: 'ai_provider_delete',
        rank: 'admin',
        replies: { 200: Deleted },
      }),
      route('POST /prompts', 'Register a prompt, or its next version; at most 500', {
        call: 'ai_prompt_put',
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
        replies: { 200: WrittenPrompt },
        failure: 'CREATE_FAILED',
      }),
      route('GET /prompts', 'Prompts with their full configuration, by name', {
        call: 'ai_prompts',
        query: Page,
        replies: { 200: page(Prompt) },
      }),
      route('GET /prompts/:name', 'A prompt with its full configuration', {
        call: 'ai_prompt_get',
        replies: { 200: data(Prompt) },
      }),
      route('DELETE /prompts/:name', 'Delete a prompt with its versions, budget and spend', {
        call: 'ai_prompt_delete',
        replies: { 200: data(z.strictObject({ name: PromptName })) },
      }),
      route('POST /prompts/:name/invoke', 'Invoke a prompt, also one that apps may not invoke', {
        handle: invoke(false),
        description:
          'With `stream: true` the response is a stream of server-sent events: `delta` {text}, then `done` {usage} or `error` {code, message}.',
        body: AdminInvocation,
        example: hello,
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
      route('GET /prompts/:name/budget', 'The budget of a prompt and what is left of it', {
        call: 'ai_budget_get',
        replies: { 200: Budget },
      }),
      route('PUT /prompts/:name/budget', 'Set or clear the budget of a prompt', {
        call: 'ai_budget_put',
        body: NewBudget,
        patch: true,
        example: { budget_usd: 25, budget_period: 'monthly' },
        replies: { 200: Budget },
      }),
      route('GET /prompts/:name/spend', 'What a prompt has cost today, this month or in all (UTC)', {
        call: 'ai_spend',
        operationId: 'getAiPromptSpend',
        query: { period: Period.optional() },
        replies: { 200: Spend },
      }),
      route('POST /messages', "Forward a body in the provider's own format", {
        handle: forward,
        operationId: 'sendAiMessages',
        description:
          "The response is the provider's own, with its status, and a stream where the body asks for one; this API's envelope where the provider did not answer. " +
          "Google's model is named by `body.model`.",
        body: NativeMessage,
        example: { provider: 'openai', body: { model: 'gpt-4o-mini', ...hello } },
        relays: true,
        replies: { 200: z.unknown() },
        refusals: { 402: ['SPEND_CEILING_REACHED'], 409: ['PROVIDER_NOT_REGISTERED'], ...upstream },
        failure: 'CREATE_FAILED',
      }),
      route('POST /embeddings', 'Embeddings of texts, by OpenAI', {
        handle: embeddings,
        operationId: 'createAiEmbeddings',
        body: EmbeddingsRequest,
        example: { provider: 'openai', model: 'text-embedding-3-small', input: 'Hello' },
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
      route('GET /invocations', 'Calls of providers, newest first; kept for 90 days', {
        call: 'ai_invocations',
        codes: 'by part',
        query: {
          prompt: z.string().max(128).optional(),
          user_id: Uuid.optional(),
          status: z.enum(['running', 'succeeded', 'rejected', 'failed', 'cancelled']).optional(),
          ...IncludeUser,
          cursor: Cursor,
          limit: Limit(),
        },
        replies: { 200: cursorPage(withUser(InvocationRow)) },
      }),
      route('GET /prompts/:name/versions', 'Versions of a prompt, newest first; the newest 1000 are kept', {
        call: 'ai_prompt_versions',
        codes: 'by part',
        query: Page,
        replies: { 200: page(Version) },
      }),
      route('POST /prompts/:name/rollback', 'Make a former version of a prompt its next one', {
        call: 'ai_prompt_rollback',
        codes: 'by part',
        body: z.object({ version: between(1, 2_000_000_000) }),
        example: { version: 1 },
        args: (context) => ({ allows_echo: allowsEcho(context) }),
        replies: { 200: WrittenPrompt },
      }),
      route('POST /prompts/:name/evaluate', 'Run cases against a prompt: how many pass, and what they cost', {
        handle: evaluate,
        codes: 'by part',
        body: Evaluation,
        example: { cases: [{ ...hello, expect: { contains: 'Hello' } }] },
        replies: { 200: Evaluated },
        failure: 'CREATE_FAILED',
      }),
    ]),
    ...group('/client/ai', endUser, [
      route('GET /prompts', 'The prompts that apps may invoke', {
        call: 'ai_client_prompts',
        codes: 'by part',
        replies: { 200: data(z.array(PromptForApps)) },
      }),
      route('POST /prompts/:name/invoke', 'Invoke a prompt', {
        handle: invoke(true),
        calls: ['ai_begin'],
        codes: 'by part',
        description:
          'With `stream: true` the response is a stream of server-sent events: `delta` {text}, then `done` {usage} or `error` {code, message}.',
        body: ClientInvocation,
        example: hello,
        replies: { 200: orEventStream(Invoked) },
        refusals: {
          422: ['ai_model_not_multimodal'],
          429: ['ai_budget_exceeded'],
          502: ['PROVIDER_FAILED', 'PROVIDER_TIMEOUT'],
        },
        failure: 'CREATE_FAILED',
      }),
      route('GET /usage', "The caller's own calls and tokens today (UTC)", {
        call: 'ai_usage',
        codes: 'by part',
        replies: {
          200: data(
            z.strictObject({ date: z.string(), calls: z.int(), input_tokens: z.int(), output_tokens: z.int() }),
          ),
        },
      }),
    ]),
  ],
})
