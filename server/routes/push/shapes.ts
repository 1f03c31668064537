import { z } from 'zod'
import { Filter } from '#server/http/grammars.ts'
import { answer, fieldsOf } from '#server/http/interface.ts'
import { between, JsonObject, Key, Line, SmallJson, Text, Time, Uuid } from '#server/http/schemas.ts'
import type { Dictionary } from '#server/http/words.ts'
import {
  Counts,
  campaignShape,
  draftFields,
  EventName,
  FrequencyCap,
  few,
  QuietHours,
  variantFields,
} from '#server/routes/campaigns/shapes.ts'

const Title = Line(200, 1)
const Body = Text(2000, 1)
const HttpsUrl = z
  .string()
  .max(2000, 'must have at most 2000 characters')
  .regex(/^https:\/\/\S+$/, 'must begin with https:// and have no spaces')
const Locale = z.string().regex(/^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8}){0,3}$/, 'must be a locale such as de or pt-BR')
export const Category = z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/, 'must match ^[A-Za-z0-9_.-]{1,64}$')

/** The size that both providers take, less what is sent beside it. */
const Data = SmallJson(3072)

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

const Variant = z.object({ ...variantFields, message: Message })

/** What is said of messages, wherever they stand. */
export const messageWords: Dictionary = {
  'message.title': ['Title', '`{{display_name|friend}}` is filled in for each user.'],
  'message.body': ['Text', 'Marks such as `{{name|friend}}` are filled in for each user.'],
  'message.data': ['Data', 'A JSON object for the app, at most 3 KB.'],
  'message.image_url': ['Image', 'An https address.'],
  'message.deep_link': ['Link into the app', 'What opens at a tap, such as `myapp://lessons`.'],
  'message.sound': ['Sound', 'The name of a sound of the app, or `default`.'],
  'message.badge': ['Badge', 'The number at the icon; `increment` is that of unread items in the inbox.'],
  'message.category': ['Category', 'What users can switch off, such as `news`.'],
  'message.collapse_key': ['Replaces', 'A new message with the same word replaces an old one on the device.'],
  'message.ttl_seconds': ['Lifetime', 'Seconds in which a device that is offline still gets it.'],
  'message.priority': ['Priority', 'High wakes the device up.'],
  'message.localized': ['Translations', 'Title and text by language, such as `{"de": {"title": "Hallo"}}`.'],
  'localized.title': ['Title', 'In this language.'],
  'localized.body': ['Text', 'In this language.'],
  'variants.message': ['Message', 'What these users get.'],
  message: ['Message', 'What devices show.'],
  variants: ['Variants', 'Messages that are tried against each other.'],
  inbox: ['Inbox', 'Keeps it in the inbox of the app as well.', { default: true }],
}

/** What a draft holds. */
export const campaignFields = {
  ...draftFields,
  message: Message,
  variants: z.array(Variant).max(10, few(10)).optional(),
  inbox: z.boolean('must be true or false').optional(),
}

export const Campaign = z.strictObject({
  ...campaignShape,
  message: Message,
  variants: z.array(Variant),
  inbox: z.boolean(),
  counts: Counts,
})

export const Delivery = answer('push_delivery_json', {
  reason: z.enum(['no_token', 'opted_out', 'quiet_hours', 'capped', 'holdout', 'cancelled']).nullable(),
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
  provider_connected: z.boolean(),
  devices: z.int(),
  by_platform: z.strictObject({ ios: z.int(), android: z.int() }),
  by_locale: z.record(z.string(), z.int()),
  skipped: z.strictObject({ no_token: z.int(), opted_out: z.int(), quiet: z.int(), capped: z.int() }),
  rendered: JsonObject,
})

const trigger = 'must be {event_name, filter} or {segment_id, on}'
export const automationFields = fieldsOf('push_automation', {
  trigger: z.union(
    [
      z.strictObject({ event_name: EventName, filter: Filter.nullish() }),
      z.strictObject({ segment_id: Uuid, on: z.enum(['entered', 'exited']) }),
    ],
    trigger,
  ),
  cancel_if_event: EventName.nullable(),
  message: Message,
  template_key: Key,
  frequency_cap: FrequencyCap.nullable(),
  quiet_hours: QuietHours.nullable(),
})

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
export const InboxItem = answer('push_inbox_json', { data: JsonObject })
