import { z } from 'zod'
import { Time, Uuid } from '#server/http/schemas.ts'

export const Platform = z.enum(['ios', 'android', 'all'], 'must be ios, android or all')
export const Environment = z.enum(['development', 'production'], 'must be development or production')
export const Tier = z.enum(['free', 'pro', 'enterprise'])

/** A project, as routes of more than one area show it. */
export const Project = z.strictObject({
  id: Uuid,
  name: z.string(),
  developer_id: Uuid,
  organization_id: Uuid,
  bundle_id: z.string().nullable(),
  google_oauth_client_id: z.string().nullable(),
  platform: Platform,
  environment: z.string(),
  tier: Tier,
  effective_tier: Tier,
  comped: z.boolean(),
  default_from_email: z.string().nullable(),
  default_from_name: z.string().nullable(),
  default_reply_to: z.string().nullable(),
  magic_link_redirect_url: z.string().nullable(),
  auth_email_brand_name: z.string().nullable(),
  user_search_enabled: z.boolean(),
  graphql_enabled: z.boolean(),
  rest_enabled: z.boolean(),
  anonymous_reads: z.boolean(),
  created_at: Time,
  updated_at: Time,
})
