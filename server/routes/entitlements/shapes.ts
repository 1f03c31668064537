import { z } from 'zod'
import { answer } from '#server/http/interface.ts'
import { Time } from '#server/http/schemas.ts'

export const Entitlement = answer('entitlement_json', { is_active: z.boolean(), expiration_date: Time.nullable() })

export const Grant = answer('grant_json', { is_active: z.boolean() })
