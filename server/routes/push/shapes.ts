import { z } from 'zod'
import { between, JsonObject, Key, Moment, SmallJson, Text, Time, Uuid } from '#server/http/schemas.ts'

const Title = Text(200, 1)
const Body = Text(2000, 1)
const HttpsUrl = z
  .string()
  .max(2000, 'must have at most 2000 characters')
  .regex(/^https:\/\/\S+$/, 'must begin with https:// and have no spaces')
const Locale = z.string().regex(/^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8}){0,3}$/, 'must be a locale such as de or pt-BR')
const DayTime = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'must be a time of day, HH:MM')
export const EventName = Text(255, 1).refine((name) => name.trim() === name, 'must not begin or end with white space')
export const Category = z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/, 'must match ^[A-Za-z0-9_.-]{1,64}$')

/** The size that both providers take, less what is sent beside it. */
const Data = SmallJson(3072)
const few = (most: number) => `must have at most ${most} entries`

export const Message = z.object({
  title: Title,
  body: Body,
  data: Data.optional(),
  image_url: HttpsUrl.optional(),
  deep_link: Text(2000, 1).optional(),
  sound: Text(100, 1).optional(),
  badge: z.union([between(0, 99_999), z.literal('increment')], 'must be a whole number or increment').optional(),
  category: Category.optional(),
  collapse_key: z
    .string()
    .regex(/^[!-~]{1,64}$/, 'must be 1 to 64 printable ASCII characters')
    .optional(),
  ttl_seconds: between(0, 2_419_200).default(86_400),
  priority: z.enum(['high', 'normal'], 'must be high or normal').default('high'),
  localized: z
    .record(Locale, z.object({ title: Title.optional(), body: Body.optional() }))
    .refine((locales) => Object.keys(locales).length <= 50, few(50))
    .optional(),
})

export const QuietHours = z.object({ start: DayTime, end: DayTime })
export const FrequencyCap = z.object({ max: between(1, 1000), hours: between(1, 2160) })

const Audience = z.union(
  [
    z.strictObject({ all: z.literal(true) }),
    z.strictObject({ segment_id: Uuid }),
    z.strictObject({ user_ids: z.array(Uuid).min(1).max(10_000) }),
    z.strictObject({ filter: JsonObject }),
  ],
  'must be one of {all: true}, {segment_id}, {user_ids} of 1 to 10000 ids, {filter}',
)
const Schedule = z.object({
  send_at: Moment.nullish(),
  mode: z.enum(['absolute', 'user_local'], 'must be absolute or user_local').optional(),
  local_time: DayTime.nullish(),
  weekdays: z.array(between(1, 7)).min(1).max(7, few(7)).nullish(),
})
const Variant = z.object({
  key: z.string().regex(/^[a-z0-9_-]{1,64}$/, 'must match ^[a-z0-9_-]{1,64}$'),
  weight: between(1, 100),
  message: Message,
})

/** What a draft holds. */
export const campaignFields = {
  name: Text(200, 1),
  message: Message,
  audience: Audience,
  exclude_segment_id: Uuid.nullish(),
  schedule: Schedule.optional(),
  throttle_per_minute: between(1, 600_000).nullish(),
  quiet_hours: QuietHours.nullish(),
  frequency_cap: FrequencyCap.nullish(),
  variants: z.array(Variant).max(10, few(10)).optional(),
  goal_event: EventName.nullish(),
  inbox: z.boolean('must be true or false').optional(),
}

const Counts = z.strictObject({
  targeted: z.int(),
  sent: z.int(),
  failed: z.int(),
  skipped: z.int(),
  opened: z.int(),
  converted: z.int(),
})
const CampaignStatus = z.enum(['draft', 'scheduled', 'sending', 'paused', 'sent', 'cancelled', 'failed'])
export const CampaignFilter = CampaignStatus.optional()

export const Campaign = z.strictObject({
  id: Uuid,
  workflow_id: z.string().nullable(),
  name: z.string(),
  message: Message,
  audience: Audience,
  exclude_segment_id: Uuid.nullable(),
  schedule: z.strictObject({
    send_at: Time.nullable(),
    mode: z.enum(['absolute', 'user_local']),
    local_time: DayTime.nullable(),
    weekdays: z.array(z.int()).nullable(),
  }),
  throttle_per_minute: z.int().nullable(),
  quiet_hours: QuietHours.nullable(),
  frequency_cap: FrequencyCap.nullable(),
  variants: z.array(Variant),
  goal_event: z.string().nullable(),
  inbox: z.boolean(),
  status: CampaignStatus,
  failure: z.string().nullable(),
  counts: Counts,
  created_at: Time,
  updated_at: Time,
  scheduled_at: Time.nullable(),
  started_at: Time.nullable(),
  finished_at: Time.nullable(),
})
export const Scheduled = z.strictObject({
  id: Uuid,
  workflow_id: z.string().nullable(),
  status: z.literal('scheduled'),
})

const DeliveryStatus = z.enum(['pending', 'sending', 'sent', 'opened', 'converted', 'skipped', 'failed'])
export const DeliveryFilter = DeliveryStatus.optional()
export const Delivery = z.strictObject({
  id: Uuid,
  campaign_id: Uuid.nullable(),
  automation_id: Uuid.nullable(),
  app_user_id: Uuid,
  variant: z.string().nullable(),
  is_test: z.boolean(),
  status: DeliveryStatus,
  reason: z.enum(['no_token', 'opted_out', 'quiet_hours', 'capped', 'holdout', 'cancelled']).nullable(),
  code: z.string().nullable(),
  due_at: Time,
  attempts: z.array(
    z.strictObject({
      push_token_id: Uuid,
      provider: z.enum(['apns', 'fcm', 'log']),
      outcome: z.enum(['sent', 'failed', 'retry', 'refused']),
      n: z.int().optional(),
      at: Time,
      status: z.int().nullable().optional(),
      code: z.string().nullable().optional(),
      payload: JsonObject.optional(),
    }),
  ),
  sent_at: Time.nullable(),
  received_at: Time.nullable(),
  opened_at: Time.nullable(),
  converted_at: Time.nullable(),
  created_at: Time,
})

const rates = { open_rate: z.number(), conversion_rate: z.number() }
export const Stats = Counts.extend({
  ...rates,
  variants: z.array(Counts.extend({ key: z.string(), ...rates })),
  hours: z.array(Counts.omit({ targeted: true }).extend({ hour: Time })),
})
export const Preview = z.strictObject({
  audience_count: z.int(),
  is_estimate: z.boolean(),
  margin: z.int(),
  devices: z.int(),
  by_platform: z.strictObject({ ios: z.int(), android: z.int() }),
  by_locale: z.record(z.string(), z.int()),
  skipped: z.strictObject({ no_token: z.int(), opted_out: z.int(), quiet: z.int(), capped: z.int() }),
  rendered: JsonObject,
})
export const DeliveryIds = z.strictObject({ delivery_ids: z.array(Uuid) })

const trigger = 'must be {event_name, filter} or {segment_id, on}'
export const automationFields = {
  trigger: z.union(
    [
      z.strictObject({ event_name: EventName, filter: JsonObject.nullish() }),
      z.strictObject({ segment_id: Uuid, on: z.enum(['entered', 'exited']) }),
    ],
    trigger,
  ),
  delay_seconds: between(0, 2_592_000),
  cancel_if_event: EventName.nullable(),
  // one takes the place of the other
  message: Message,
  template_key: Key,
  frequency_cap: FrequencyCap.nullable(),
  quiet_hours: QuietHours.nullable(),
  inbox: z.boolean(),
  is_active: z.boolean(),
}

export const Automation = z.strictObject({
  id: Uuid,
  key: Key,
  ...automationFields,
  message: Message.nullable(),
  template_key: Key.nullable(),
  created_at: Time,
  updated_at: Time,
})

export const Preferences = z.strictObject({
  enabled: z.boolean(),
  categories: z.record(z.string(), z.boolean()),
  quiet_hours: QuietHours.nullable(),
  timezone: z.string().nullable(),
})
export const NewPreferences = z.object({
  enabled: z.boolean('must be true or false').optional(),
  categories: z
    .record(Category, z.boolean())
    .refine((categories) => Object.keys(categories).length <= 100, few(100))
    .optional(),
  quiet_hours: QuietHours.nullish(),
  timezone: Text(64, 1).nullish(),
})
export const InboxItem = z.strictObject({
  id: Uuid,
  title: z.string(),
  body: z.string(),
  image_url: z.string().nullable(),
  deep_link: z.string().nullable(),
  data: JsonObject,
  created_at: Time,
  read_at: Time.nullable(),
  expires_at: Time,
})
