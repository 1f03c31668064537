import type { Kind } from '../parts/definitions/kind.ts'

/** The fields of a streak in the words of its form. */
export const words: NonNullable<Kind['words']> = {
  name: { section: 'The streak' },
  key: { section: 'The streak' },
  description: { section: 'The streak' },
  qualifying_event: { title: 'Event', help: 'What users do to keep it', section: 'What counts' },
  event_filter: { title: 'Only events where', section: 'What counts' },
  period: { title: 'Once each', section: 'What counts', choices: { day: 'Day', week: 'Week', month: 'Month' } },
  min_count: { title: 'Events needed', section: 'What counts' },
  week_starts_on: { title: 'Week starts on', help: '1 is Monday, 7 Sunday', section: 'Calendar' },
  timezone_mode: {
    title: 'Whose days',
    section: 'Calendar',
    choices: { user: 'Each user’s own', fixed: 'One time zone' },
  },
  timezone: { title: 'Time zone', help: 'Where everybody has the same', section: 'Calendar' },
  grace_hours: { title: 'Grace', help: 'Hours in which a missed period can still be filled', section: 'Forgiveness' },
  freezes_initial: { title: 'Freezes at the start', section: 'Forgiveness' },
  freezes_max: { title: 'Most freezes', section: 'Forgiveness' },
  freeze_earn_every: { title: 'Earn a freeze every', help: 'Periods; 0 is never', section: 'Forgiveness' },
  at_risk_hours: { title: 'At risk', help: 'Hours before the end of a period', section: 'Forgiveness' },
  restore_window_hours: { title: 'Can be restored', help: 'Hours after it broke', section: 'Forgiveness' },
  milestones: { title: 'Milestones', help: 'Each paid once per streak', section: 'Milestones' },
  'milestones.count': { title: 'Length' },
  'milestones.reward': { title: 'Reward' },
  allow_client_qualify: { title: 'Your app may count a period without an event', section: 'Limits' },
  is_active: { title: 'Active', section: 'Limits' },
}
