import type { ReactNode } from 'react'
import type { Row } from '../api.ts'
import { filterWords } from '../parts/form/filter.ts'
import { ReferenceName } from '../parts/form/reference_input.tsx'
import { count, counted, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'

/** What a campaign or an automation is set to, in words. What was not set is not said. */
type Facts = readonly (readonly [string, ReactNode])[]

const days = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun']

const part = (row: Row, name: string): Row => (row[name] ?? {}) as Row
const text = (value: unknown): string | undefined => (value === null || value === undefined ? undefined : String(value))
const yes = (value: unknown): string => (value ? 'yes' : 'no')
const segmentOf = (id: unknown) => <ReferenceName reference="segment_id" value={String(id)} />

/** Seconds as the largest unit that says them whole. */
const waitOf = (seconds: number): string => {
  const unit = (
    [
      ['day', 86_400],
      ['hour', 3600],
      ['minute', 60],
    ] as const
  ).find(([, size]) => seconds % size === 0)
  return seconds === 0 ? 'nothing' : unit ? counted(seconds / unit[1], unit[0]) : counted(seconds, 'second')
}

const audienceOf = (audience: Row): ReactNode => {
  if (audience['segment_id']) return segmentOf(audience['segment_id'])
  if (Array.isArray(audience['user_ids'])) return counted(audience['user_ids'].length, 'chosen user')
  return audience['filter'] ? `users whose ${filterWords(audience['filter'])}` : 'all users'
}

const scheduleOf = (schedule: Row): ReactNode => {
  const { send_at: at, mode, local_time: time, weekdays } = schedule
  const on = Array.isArray(weekdays) ? `, ${weekdays.map((day) => days[Number(day) - 1]).join(' ')}` : ''
  if (mode === 'user_local') return `${time ?? 'at the same hour'} of each user's own day${on}`
  return at ? <When at={String(at)} /> : 'not scheduled'
}

const limits = (row: Row): Facts => {
  const [quiet, cap] = [part(row, 'quiet_hours'), part(row, 'frequency_cap')]
  return [
    ['Quiet hours', quiet['start'] ? `${quiet['start']} to ${quiet['end']}` : undefined],
    ['Cap', cap['max'] ? `${cap['max']} in ${counted(Number(cap['hours']), 'hour')}` : undefined],
  ]
}

const contentOf = (row: Row): Facts => {
  const message = part(row, 'message')
  return [
    ['Template', text(row['template_key'])],
    ['Title', text(message['title'])],
    ['Text', text(message['body'])],
    ['Opens', text(message['deep_link'])],
  ]
}

const changes = (row: Row): Facts => [
  ['Made', <When key="made" at={row['created_at'] as string} />],
  ['Changed', <When key="changed" at={row['updated_at'] as string} />],
]

const shown = (facts: Facts): Facts => facts.filter(([, value]) => value !== undefined)

export const campaignFacts = (row: Row): Facts =>
  shown([
    ['Status', <Status key="status" value={String(row['status'])} />],
    ['Reaches', audienceOf(part(row, 'audience'))],
    ['Leaves out', row['exclude_segment_id'] ? segmentOf(row['exclude_segment_id']) : undefined],
    ...contentOf(row),
    ['Sends', scheduleOf(part(row, 'schedule'))],
    ['At most a minute', row['throttle_per_minute'] ? count(Number(row['throttle_per_minute'])) : undefined],
    ...limits(row),
    ['Goal', text(row['goal_event'])],
    ['Counts openings', 'track' in row ? yes(row['track']) : undefined],
    ...changes(row),
  ])

export const automationFacts = (row: Row): Facts => {
  const trigger = part(row, 'trigger')
  const where = filterWords(trigger['filter'])
  return shown([
    ['After', trigger['event_name'] ? `${trigger['event_name']}${where ? ` where ${where}` : ''}` : undefined],
    ['Segment', trigger['segment_id'] ? segmentOf(trigger['segment_id']) : undefined],
    ['When a user has', trigger['on'] ? String(trigger['on']) : undefined],
    ['Waits', waitOf(Number(row['delay_seconds']))],
    ['Unless there was', text(row['cancel_if_event'])],
    ...contentOf(row),
    ...limits(row),
    ['Active', yes(row['is_active'])],
    ...changes(row),
  ])
}
