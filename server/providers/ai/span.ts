import type { ChatRequest, FinishReason, Usage } from '#server/providers/ai/chat.ts'
import { activeSpan, errorType, noSpan, type Span, startSpan } from '#server/telemetry/spans.ts'

/** Providers by their names in OpenTelemetry's conventions for generative AI. */
const names: Readonly<Record<string, string>> = {
  anthropic: 'anthropic',
  google: 'gcp.gemini',
  mistral: 'mistral_ai',
  openai: 'openai',
}

/** The span of a call of a model. No message, no answer and no schema is in it: what people write to a model is theirs. */
export const modelSpan = (
  operation: 'chat' | 'embeddings',
  provider: string,
  model: string,
  chat?: Pick<ChatRequest, 'maxTokens' | 'format' | 'isStream'>,
): Span => {
  if (!activeSpan()?.isSampled) return noSpan
  return startSpan(`${operation} ${model}`, 'client', {
    'gen_ai.operation.name': operation,
    'gen_ai.provider.name': names[provider] ?? provider,
    'gen_ai.request.model': model,
    'gen_ai.request.max_tokens': chat?.maxTokens,
    'gen_ai.request.stream': chat?.isStream || undefined,
    'gen_ai.output.type': chat && (chat.format.type === 'text' ? 'text' : 'json'),
  })
}

/** Tokens as the provider reports them: what a call costs where it reports none is an estimate, and not here. */
export const setUsed = (span: Span, { input, output }: Usage, finishReason?: FinishReason): void =>
  span.set({
    'gen_ai.usage.input_tokens': input,
    'gen_ai.usage.output_tokens': output,
    'gen_ai.response.finish_reasons': finishReason === undefined ? undefined : [finishReason],
  })

/** The problem's code, where it is one of a provider. */
export const problemType = (error: unknown): string => {
  const { problem } = (error ?? {}) as { problem?: { code: string; status: number | null } }
  return problem ? String(problem.status ?? problem.code) : errorType(error)
}
