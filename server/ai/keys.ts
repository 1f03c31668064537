/** Registering the key of a provider: stored encrypted, and shown by its ends. */
import { keyPurpose } from '#server/ai/calls.ts'
import { projectIdOf } from '#server/http/project.ts'
import type { HandlerContext } from '#server/http/route.ts'

/** The ends of a key, for people who have several; of a short one only its last characters. */
const previewOf = (key: string): string =>
  key.length >= 20 ? `${key.slice(0, 6)}…${key.slice(-4)}` : `…${key.length >= 8 ? key.slice(-2) : ''}`

export const putProvider = (context: HandlerContext) => {
  const { name, api_key } = context.body as { name: string; api_key: string }
  return context.call('ai_provider_put', {
    name,
    api_key_sealed: context.services.secrets.encrypt(keyPurpose(projectIdOf(context), name), api_key),
    key_id: context.services.secrets.current,
    api_key_preview: previewOf(api_key),
  })
}
