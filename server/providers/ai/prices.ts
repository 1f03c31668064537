import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { StartError } from '#server/errors.ts'

const price = z.number().min(0).max(1_000_000)

const Prices = z.record(
  z.enum(['anthropic', 'openai', 'google', 'mistral']),
  z.record(
    z.string().min(1).max(200),
    z.strictObject({ input_usd: price, output_usd: price, is_multimodal: z.boolean().optional() }),
  ),
)

/** Prices of an installation, over those of sql/seeds/tenant/ai_prices.sql: {provider: {model: {input_usd, output_usd, is_multimodal}}}. */
export type Prices = Partial<z.output<typeof Prices>>

declare module '#server/services.ts' {
  interface Services {
    readonly aiPrices: Prices
  }
}

/** Reads AI_PRICES_FILE. Throws a StartError that names what is wrong. */
export const readPrices = (file: string | undefined): Prices => {
  if (!file) return {}
  try {
    return z.partialRecord(Prices.keyType, Prices.valueType).parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch (error) {
    throw new StartError(`AI_PRICES_FILE ${file} cannot be used: ${(error as Error).message}`)
  }
}
