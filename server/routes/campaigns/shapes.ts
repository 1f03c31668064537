import { z } from 'zod'
import { Filter } from '#server/http/grammars.ts'
import { between, Line, Moment, Text, Time, Uuid } from '#server/http/schemas.ts'
import type { Dictionary, Form } from '#server/http/words.ts'

// what campaigns of push and of mail have in common
export const few = (most: number) => `must have at most ${most} entries`
export const DayTime = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'must be a time of day, HH:MM')
export const EventName = Text(255, 1).refine((name) => name.trim() === name, 'must not begin or end with white space')
export const QuietHours = z.object({ start: DayTime, end: DayTime })
export const FrequencyCap = z.object({ max: between(1, 1000), hours: between(1, 2160) })

const Audience = z.union(
  [
    z.strictObject({ all: z.literal(true) }),
    z.strictObject({ segment_id: Uuid }),
    z.strictObject({ user_ids: z.array(Uuid).min(1).max(10_000) }),
    z.strictObject({ filter: Filter }),
  ],
  'must be one of {all: true}, {segment_id}, {user_ids} of 1 to 10000 ids, {filter}',
)
const Schedule = z.object({
  send_at: Moment.nullish(),
  mode: z.enum(['absolute', 'user_local'], 'must be absolute or user_local').optional(),
  local_time: DayTime.nullish(),
  weekdays: z.array(between(1, 7)).min(1).max(7, few(7)).nullish(),
})
export const variantFields = {
  key: z.string().regex(/^[a-z0-9_-]{1,64}$/, 'must match ^[a-z0-9_-]{1,64}$'),
  weight: between(1, 100),
}

/** What a draft of any channel holds. */
export const draftFields = {
  name: Line(200, 1),
  audience: Audience,
  exclude_segment_id: Uuid.nullish(),
  schedule: Schedule.optional(),
  throttle_per_minute: between(1, 600_000).nullish(),
  quiet_hours: QuietHours.nullish(),
  frequency_cap: FrequencyCap.nullish(),
  goal_event: EventName.nullish(),
}

/** The form of a draft: each channel has its own part of content. */
export const draftForm = (content: Form[string]): Form => ({
  Basics: { name: ['Name', 'For your team; users do not see it.'] },
  'Who gets it': {
    audience: ['Audience', 'All users, a segment, some users by id, or those that a filter matches.'],
    exclude_segment_id: ['Leave out', 'Users in this segment get nothing.', { unset: 'Nobody is left out' }],
  },
  Content: content,
  When: {
    send_now: ['Send now', 'Starts as soon as it is made.', { default: false }],
    send_at: ['Send at', 'Starts at this moment.', { unset: 'It stays a draft' }],
    schedule: ['Schedule', 'At one moment for all, or at a time of day in the time zone of each user.'],
    quiet_hours: ['Quiet hours', 'Users whose own time is within are skipped.', { unset: 'None' }],
  },
  Limits: {
    throttle_per_minute: ['Messages per minute', 'How many are sent at most.', { unset: 'As fast as possible' }],
    frequency_cap: ['Cap', 'Users who got so many messages lately are skipped.', { unset: 'None' }],
  },
  Results: {
    goal_event: ['Goal', 'An event within 24 hours of the message that counts as success.', { unset: 'None' }],
    workflow_id: ['Workflow id', 'A text of your own: only one campaign is made with it.'],
  },
})

/** What is said of the parts of drafts and of messages. */
export const draftWords: Dictionary = {
  'audience.all': ['All users', 'Everybody but banned users.'],
  'audience.segment_id': ['Segment', 'Users who are in it when the campaign starts.'],
  'audience.user_ids': ['Users', 'The ids of up to 10,000 users.'],
  'audience.filter': ['Filter', 'A filter on users: `email`, `timezone` and the like, or a property.'],
  send_at: ['Send at', 'The moment at which it starts.', { unset: 'At once' }],
  'schedule.send_at': ['Send at', 'Starts at this moment.'],
  'schedule.mode': ['Mode', 'One moment for all, or the local time of each user.', { default: 'absolute' }],
  'schedule.local_time': ['Time of day', 'In the time zone of each user, such as `18:30`.'],
  'schedule.weekdays': ['Weekdays', '1 is Monday, 7 Sunday.', { unset: 'Every day' }],
  'quiet_hours.start': ['From', 'A time of day, such as `22:00`.'],
  'quiet_hours.end': ['Until', 'A time of day, such as `07:00`.'],
  'frequency_cap.max': ['Messages', 'How many a user may have got.'],
  'frequency_cap.hours': ['Hours', 'In how many hours.'],
  'variants.key': ['Key', 'The name of the variant in statistics, such as `a`.'],
  'variants.weight': ['Share', 'In percent of the users; who is beyond the sum gets nothing.'],
  user_id: ['User', 'For whom the message is shown.', { unset: 'Anybody' }],
}

export const Counts = z.strictObject({
  targeted: z.int(),
  sent: z.int(),
  failed: z.int(),
  skipped: z.int(),
  opened: z.int(),
  converted: z.int(),
})
const CampaignStatus = z.enum(['draft', 'scheduled', 'sending', 'paused', 'sent', 'cancelled', 'failed'])
export const CampaignFilter = CampaignStatus.optional()

export const campaignShape = {
  id: Uuid,
  workflow_id: z.string().nullable(),
  name: z.string(),
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
  goal_event: z.string().nullable(),
  status: CampaignStatus,
  failure: z.string().nullable(),
  created_at: Time,
  updated_at: Time,
  scheduled_at: Time.nullable(),
  started_at: Time.nullable(),
  finished_at: Time.nullable(),
}
export const Scheduled = z.strictObject({
  id: Uuid,
  workflow_id: z.string().nullable(),
  status: z.literal('scheduled'),
})

export const DeliveryStatus = z.enum(['pending', 'sending', 'sent', 'opened', 'converted', 'skipped', 'failed'])
export const DeliveryFilter = DeliveryStatus.optional()
export const DeliveryIds = z.strictObject({ delivery_ids: z.array(Uuid) })
