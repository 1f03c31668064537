import { z } from 'zod'
import { refusal } from '#server/errors.ts'
import type { CatalogConfig } from '#server/providers/monetization/live.ts'
import { integrationPurpose } from '#server/providers/project_mail.ts'
import type { Services } from '#server/services.ts'

const Config = z.object({
  secret_api_key: z.string().min(1),
  secret_api_key_write: z.string().min(1).optional().catch(undefined),
  project_id: z.string().min(1).max(255),
})

/** Opens the sealed config of the integration revenuecat. Refuses 400 MONETIZATION_NOT_CONFIGURED when it names no project of the provider. */
export const connectionOf = (
  { secrets }: Pick<Services, 'secrets'>,
  projectId: string,
  sealed: string,
): CatalogConfig => {
  const parsed = Config.safeParse(JSON.parse(secrets.decrypt(integrationPurpose(projectId, 'revenuecat'), sealed)))
  if (!parsed.success) {
    throw refusal(
      400,
      'MONETIZATION_NOT_CONFIGURED',
      "The config of the integration revenuecat must have project_id, the provider's id of the project.",
    )
  }
  return parsed.data
}
