import { z } from 'zod'
import { list } from '#server/ai/requests.ts'
import { answer } from '#server/http/interface.ts'
import { between, data, JsonObject, Text, Time, Uuid } from '#server/http/schemas.ts'
import { aiProviders } from '#server/providers/ai/gateway.ts'

const usd = z.number('must be a number').min(0, 'must be a number from 0').max(1e12, 'must be at most 1000000000000')

export const ProviderName = z.enum(aiProviders, list(aiProviders))
const promptProviders = [...aiProviders, 'echo'] as const
/** Google's model is in the path of its requests: one of dots would make another path of it. */
const Model = Text(200, 1).refine((model) => /[^/.]/.test(model.replace(/^models\//, '')), 'must name a model')

export const Provider = z.strictObject({ name: ProviderName, configured: z.boolean(), api_key_preview: z.string() })

export const PromptName = z.string().regex(/^[a-z][a-z0-9_-]{0,127}$/, 'must match ^[a-z][a-z0-9_-]{0,127}$')

const rateKeys = ['user', 'ip', 'project'] as const
const RateLimit = z.object({
  window: between(1, 86_400),
  max: between(1, 1_000_000),
  key: z.enum(rateKeys, list(rateKeys)).default('user'),
})
const Cost = z.object({
  currency_code: z.string('must be a string').min(1, 'is required').max(128, 'must have at most 128 characters'),
  amount: between(1, 2_000_000_000),
})

export const NewPrompt = z.object({
  name: PromptName,
  provider: z.enum(promptProviders, list(promptProviders)),
  model: Model,
  system_prompt: Text(100_000).nullable().default(null),
  max_tokens: between(1, 200_000).default(4096),
  rate_limit: RateLimit.nullable().default(null),
  client_invokable: z.boolean('must be true or false').default(false),
  description: Text(2000).nullable().default(null),
  log_payloads: z.boolean('must be true or false').default(false),
  cost: Cost.nullable().default(null),
})

const config = {
  provider: z.string(),
  model: z.string(),
  system_prompt: z.string().nullable(),
  max_tokens: z.int(),
  rate_limit: z.strictObject({ window: z.int(), max: z.int(), key: z.enum(rateKeys) }).nullable(),
  client_invokable: z.boolean(),
  description: z.string().nullable(),
  log_payloads: z.boolean(),
  cost: z.strictObject({ currency_code: z.string(), amount: z.int() }).nullable(),
}
export const Prompt = z.strictObject({
  name: z.string(),
  version: z.int(),
  ...config,
  created_at: Time,
  updated_at: Time,
})
export const Version = z.strictObject({ version: z.int(), ...config, created_at: Time })
export const WrittenPrompt = data(
  z.strictObject({
    name: z.string(),
    version: z.int(),
    provider: z.string(),
    model: z.string(),
    client_invokable: z.boolean(),
  }),
)

const periods = ['daily', 'monthly', 'total'] as const
export const Period = z.enum(periods, list(periods))
/** Amounts are shown with ten decimal places: a smaller one would be shown as 0. */
const budgetUsd = usd.refine((amount) => amount === 0 || amount >= 1e-10, 'must be 0, or at least 0.0000000001')
export const NewBudget = z.object({ budget_usd: budgetUsd.nullable(), budget_period: Period.optional() })
export const Budget = data(
  z.strictObject({
    budget_usd: z.number().nullable(),
    budget_period: Period,
    period_spend_usd: z.number(),
    remaining_usd: z.number().nullable(),
    exceeded: z.boolean(),
  }),
)
export const Spend = data(
  z.strictObject({
    name: z.string(),
    period: Period,
    period_start: Time,
    spend_usd: z.number(),
    budget_usd: z.number().nullable(),
    exceeded: z.boolean(),
  }),
)

const UsageShape = z.strictObject({ input_tokens: z.int(), output_tokens: z.int(), cost_usd: z.number() })
const invocation = {
  id: Uuid,
  prompt: z.string(),
  version: z.int(),
  usage: UsageShape,
  finish_reason: z.string().nullable(),
}
export const Invoked = data(
  z.union([
    z.strictObject({ ...invocation, output: z.string() }),
    z.strictObject({ ...invocation, object: z.unknown() }),
  ]),
)

export const InvocationRow = answer('ai_invocation_json', { cost_usd: z.number().nullable(), payload: z.unknown() })
export const Evaluated = data(
  z.strictObject({
    prompt: z.string(),
    version: z.int().nullable(),
    pass_rate: z.number(),
    cost_usd: z.number(),
    cases: z.array(
      z.strictObject({
        pass_rate: z.number(),
        cost_usd: z.number(),
        runs: z.array(
          z.strictObject({
            passed: z.boolean(),
            output: z.string().nullable(),
            error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
            cost_usd: z.number(),
          }),
        ),
      }),
    ),
  }),
)

export const NativeMessage = z.object({ provider: ProviderName, body: JsonObject })
export const EmbeddingsRequest = z.object({
  provider: z.literal('openai', 'must be openai: embeddings are supported on this provider only'),
  model: Model,
  input: z.union(
    [Text(500_000, 1), z.array(Text(500_000, 1)).min(1).max(2048)],
    'must be a text, or 1 to 2048 texts, of 1 to 500000 characters each',
  ),
})
