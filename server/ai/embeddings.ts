import { exchangeWith, finish, providerRefusal, reserve, watchClient } from '#server/ai/calls.ts'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { usageOf } from '#server/providers/ai/chat.ts'
import { embed, ProviderError, type ProviderProblem, spentOf } from '#server/providers/ai/gateway.ts'

export type Wanted = {
  readonly model: string
  readonly input: string | readonly string[]
  readonly dimensions?: number
}

/** Embeddings of texts, reserved and recorded. Throws the refusals of a provider's failure, and 402 where the spend ceiling does not cover them. */
export const embedded = async (context: HandlerContext, json: Wanted) => {
  const client = watchClient(context)
  try {
    const inputBytes = [json.input].flat().reduce((sum, text) => sum + Buffer.byteLength(text), 0)
    // a token is at least one byte
    const bound = {
      kind: 'embeddings',
      provider: 'openai',
      model: json.model,
      most_input: inputBytes,
      most_output: 0,
    } as const
    const { begun, reserved } = await reserve(context, bound, client)
    const end = async (input: number | undefined, problem: ProviderProblem | null) => {
      // nothing was read of a request that was refused, or never sent
      const isUnread = problem !== null && !problem.isSent
      const spent = spentOf({ usage: usageOf(input, 0), inputBytes, outputBytes: 0, maxTokens: 0, isComplete: true })
      await reserved
      await finish(context, begun.id, {
        outcome: problem === null ? 'succeeded' : problem.code === 'ABORTED' ? 'cancelled' : 'failed',
        error_code: problem?.code ?? null,
        input_tokens: isUnread ? 0 : spent.input,
        output_tokens: 0,
        is_estimated: problem !== null || spent.isEstimated,
      })
      return spent.input
    }
    try {
      const { embeddings, usage } = await embed(
        exchangeWith(context, 'openai', begun.api_key_sealed, client.signal),
        json,
      )
      const prompt_tokens = await end(usage.input, null)
      return { embeddings, usage: { prompt_tokens, total_tokens: usage.total ?? prompt_tokens } }
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error
      await end(undefined, error.problem)
      throw providerRefusal(error)
    }
  } finally {
    client.release()
  }
}

/** The models that shorten their vectors to a length that is asked for, each with its own length. */
const embeddingModels = [
  { model: 'text-embedding-3-small', dimensions: 1536 },
  { model: 'text-embedding-3-large', dimensions: 3072 },
] as const

/**
 * The vector of a text for a search in a column, by the smallest of OpenAI's current models whose vectors are long enough. Null when there is no such
 * column of vectors: the search then refuses.
 */
export const vectorOf = async (
  context: HandlerContext,
  column: string,
  text: string,
): Promise<readonly number[] | null> => {
  const collection = String(context.params['name'])
  const reply = await context.call(
    'ai_embedding_target',
    { collection, column_name: column },
    { role: 'app_worker', readOnly: true },
  )
  const { is_configured, dimensions } = dataOf<{ is_configured: boolean; dimensions: number | null }>(reply)
  if (!is_configured)
    throw refusal(400, 'EMBEDDINGS_NOT_CONFIGURED', 'Register the AI provider openai, or send a vector.')
  if (dimensions === null) return null
  const fitting = embeddingModels.find((known) => known.dimensions >= dimensions)
  // no model makes vectors as long as this column's: the search refuses one of another length
  if (!fitting) return []
  const wanted = { model: fitting.model, input: text, ...(fitting.dimensions === dimensions ? {} : { dimensions }) }
  const { embeddings } = await embedded(context, wanted)
  return embeddings[0] ?? null
}
