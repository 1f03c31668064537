import type { z } from 'zod'

/** What a field is called, in plain words, and what a person needs to know to fill it in. */
export type Words = {
  readonly title: string
  /** What it does, its unit, an example: a sentence or two, where the title does not say it all. */
  readonly help?: string
  /** The field that it may be made from: a key from the name. */
  readonly from?: string
  /** What counts where it is left out, if neither the column nor the parameter of the function says it. */
  readonly default?: unknown
  /** What follows where it is left out, if no one value stands for it: "The name", "No limit". */
  readonly unset?: string
}

/** `'Name'`, `['Name', 'Shown to players.']`, or with more: `['Key', 'Never changes.', { from: 'name' }]`. */
export type Said = string | readonly [title: string, help: string, more?: Omit<Words, 'title' | 'help'>]

/** Words by the name of the field, or by the end of its path: `'quiet_hours.start'`. */
export type Dictionary = Readonly<Record<string, Said>>

/** The fields of a form by section, in the order of the form; `true` where the words are those of every area. */
export type Form = Readonly<Record<string, Readonly<Record<string, Said | true>>>>

/** The keyword of a schema that holds its words until the document is written. */
export const wordsKey = 'x-trellis-words'

export const wordsOf = (said: Said): Words => {
  if (typeof said === 'string') return { title: said }
  const [title, help, more] = said
  return { title, help, ...more }
}

/** The words of a form for fields that stand within another one: `within('columns', columnForm)`. */
export const within = (name: string, form: Form): Dictionary =>
  Object.fromEntries(
    Object.values(form).flatMap((fields) =>
      Object.entries(fields).flatMap(([key, said]) => (said === true ? [] : [[`${name}.${key}`, said] as const])),
    ),
  )

/** A schema with words of its own, wherever it is used; they win over those of areas. */
export const field = <T extends z.ZodType>(schema: T, ...said: Exclude<Said, string>): T =>
  schema.meta({ [wordsKey]: wordsOf(said) }) as T

/** A field of a JSON schema that is written by hand. */
export const documented = (schema: Readonly<Record<string, unknown>>, title: string, help?: string) => ({
  ...schema,
  [wordsKey]: { title, ...(help ? { help } : {}) },
})

/** What is the same in every area. An area, a route or a form that says something else wins. */
export const commonWords: Dictionary = {
  key: [
    'Key',
    'The name in code and in calls, such as `first_lesson`: a small letter, then small letters, digits, _ and -. It never changes.',
    { from: 'name' },
  ],
  name: ['Name', 'What people read, in lists and in messages.'],
  description: ['Description', 'A note about what it is for.'],
  is_active: ['Active', 'Switched off, it stays defined and has no effect.'],
  icon_url: ['Icon', 'The address of a picture.'],
  image_url: ['Image', 'The address of a picture.'],
  avatar_url: ['Avatar', 'The address of a picture.'],
  metadata: ['Metadata', 'Any JSON object of your own, kept and returned as it is.'],
  properties: ['Properties', 'Any JSON object.'],
  starts_at: ['Starts at', 'Before this moment it has no effect.', { unset: 'At once' }],
  ends_at: ['Ends at', 'From this moment on it has no effect.', { unset: 'Never' }],
  expires_at: ['Expires at', 'The moment from which it counts no more.', { unset: 'Never' }],
  timezone: ['Time zone', 'An IANA name, such as `Europe/Berlin`.'],
  email: 'Email address',
  phone: ['Phone number', 'In international form, such as `+4915112345678`.'],
  password: 'Password',
  display_name: ['Display name', 'The name that others see.'],
  app_user_id: ['User', 'The id of the user.'],
  user_id: ['User', 'The id of the user.'],
  user_ids: ['Users', 'The ids of the users.'],
  event_name: ['Event', 'The name of an event, such as `lesson_completed`.'],
  segment_id: ['Segment', 'Only users in this segment.', { unset: 'All users' }],
  reason: ['Reason', 'Why, for the records.'],
  amount: 'Amount',
  quantity: 'Quantity',
  limit: ['Limit', 'How many at most; larger numbers are lowered to the greatest page.'],
  offset: ['Offset', 'How many to skip.'],
  cursor: ['Cursor', 'The `next_cursor` of the page before.', { unset: 'The first page' }],
  idempotency_key: ['Idempotency key', 'A text of your own: the same request sent again with it has no second effect.'],
  currency_code: ['Currency', 'The code of a currency, such as `COINS`.'],
  organization_id: ['Organization', 'The id of an organization.'],
  project_id: ['Project', 'The id of a project.'],
  tags: ['Tags', 'Words to find it by.'],
  url: ['Address', 'An https address.'],
}
