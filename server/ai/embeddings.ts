import { exchangeWith, isComped, keep, providerRefusal, watchClient } from '#server/ai/calls.ts'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { embed, ProviderError } from '#server/providers/ai/gateway.ts'

/** Embeddings of texts, recorded. Throws the refusals of a provider's failure. */
export const embedded = async (
  context: HandlerContext,
  sealed: string,
  json: { readonly model: string; readonly input: string | readonly string[]; readonly dimensions?: number },
) => {
  const client = watchClient(context)
  const row = { kind: 'embeddings', provider: 'openai', model: json.model, output_tokens: 0 } as const
  try {
    const made = await embed(exchangeWith(context, 'openai', sealed, client.signal), json)
    const input_tokens = made.usage.prompt_tokens
    await keep(context, { ...row, status: 'succeeded', error_code: null, input_tokens, is_estimated: false })
    return made
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error
    const { code } = error.problem
    const status = code === 'ABORTED' ? 'cancelled' : 'failed'
    await keep(context, { ...row, status, error_code: code, input_tokens: 0, is_estimated: true })
    throw providerRefusal(error)
  } finally {
    client.release()
  }
}

const ceilingReached = () =>
  refusal(402, 'SPEND_CEILING_REACHED', 'The project has reached its spend ceiling of this month.')

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
    { collection, column_name: column, is_comped: isComped(context) },
    { role: 'app_worker', readOnly: true },
  )
  const { api_key_sealed, dimensions, is_over_ceiling } = dataOf<{
    api_key_sealed: string | null
    dimensions: number | null
    is_over_ceiling: boolean
  }>(reply)
  if (api_key_sealed === null)
    throw refusal(400, 'EMBEDDINGS_NOT_CONFIGURED', 'Register the AI provider openai, or send a vector.')
  if (dimensions === null) return null
  if (is_over_ceiling) throw ceilingReached()
  const fitting = embeddingModels.find((known) => known.dimensions >= dimensions)
  // no model makes vectors as long as this column's: the search refuses one of another length
  if (!fitting) return []
  const wanted = { model: fitting.model, input: text, ...(fitting.dimensions === dimensions ? {} : { dimensions }) }
  const { embeddings } = await embedded(context, api_key_sealed, wanted)
  return embeddings[0] ?? null
}
