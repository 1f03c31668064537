/**
 * The three grammars that fields of many areas have, as the document names them: filters, rewards and criteria, and the rules of segments and flags, which are
 * made of filters. SQL decides what is valid; here stands what a person or an editor needs to write one. Requests and responses share them.
 */
import { z } from 'zod'
import { JsonObject, SmallJson } from '#server/http/schemas.ts'
import { documented } from '#server/http/words.ts'

const text = { type: 'string' }
const whole = { type: 'integer' }
const listOf = (items: object) => ({ type: 'array', items })
const referTo = (name: string) => ({ $ref: `#/components/schemas/${name}` })

/** Any JSON object for the server; in the document an object with these fields, of this name. */
const grammar = (title: string, description: string, properties: Readonly<Record<string, object>>) =>
  JsonObject.meta({ title, description, properties })

/** The same where SQL refuses what is no object, with its own words. */
const item = (title: string, description: string, properties: Readonly<Record<string, object>>) =>
  z.unknown().meta({ title, description, type: 'object', properties, additionalProperties: {} })

const operators = [
  'eq',
  'ne',
  'gt',
  'gte',
  'lt',
  'lte',
  'in',
  'not_in',
  'like',
  'ilike',
  'is_null',
  'is_not_null',
  'contains',
  'contained_by',
  'containedBy',
  'overlaps',
]

/** `and`, `or` and `not` of a grammar of conditions. */
const groups = (name: string) => ({
  and: documented(listOf(referTo(name)), 'All of', 'Every one of these holds.'),
  or: documented(listOf(referTo(name)), 'Any of', 'At least one of these holds.'),
  not: documented(referTo(name), 'Not', 'This does not hold.'),
})

const comparison = {
  op: documented(
    { type: 'string', enum: operators },
    'Comparison',
    'How the two are compared: `gte` is greater or equal, `like` a pattern with %.',
  ),
  value: documented({}, 'Value', 'What it is compared with; none for `is_null` and `is_not_null`.'),
}

/** A filter on properties of events or users, or on columns of a collection: docs/filters.md. */
export const Filter = grammar(
  'Filter',
  'A condition `{column, op, value}`, or a group of them: one of `and`, `or` and `not`.',
  {
    ...groups('Filter'),
    column: documented(text, 'Property', 'A property or a column; dots lead into it: `cart.total`.'),
    ...comparison,
  },
)

const amount = (title: string, help: string) => documented(whole, title, help)

/** What a user is given, in the transaction that earned it, so that it must not be long: docs of the areas that give it. */
export const Reward = SmallJson(
  8192,
  grammar('Reward', 'What a user is given, once: any of these together.', {
    xp: amount('XP', 'How many points.'),
    currencies: documented(
      listOf({
        type: 'object',
        properties: {
          currency_code: documented(text, 'Currency', 'The code of a currency, such as `COINS`.'),
          amount: amount('Amount', 'How much of the currency is credited.'),
        },
      }),
      'Currencies',
      'Amounts of currencies.',
    ),
    items: documented(
      listOf({
        type: 'object',
        properties: {
          catalog_item_key: documented(text, 'Item', 'The key of an item of the catalog.'),
          quantity: amount('Quantity', 'How many; 1 if left out.'),
        },
      }),
      'Items',
      'Items of the catalog.',
    ),
    entitlements: documented(
      listOf({
        type: 'object',
        properties: {
          entitlement_id: documented(text, 'Entitlement', 'The id of an entitlement, such as `pro`.'),
          duration_days: documented({ type: ['integer', 'null'] }, 'Days', 'For how many days; for life if left out.'),
        },
      }),
      'Entitlements',
      'Access that the user gets.',
    ),
    freezes: documented(
      listOf({
        type: 'object',
        properties: {
          streak_key: documented(text, 'Streak', 'The key of a streak.'),
          amount: amount('Freezes', 'How many freezes.'),
        },
      }),
      'Freezes',
      'Freezes of streaks.',
    ),
    achievement_key: documented(text, 'Achievement', 'The key of an achievement that is unlocked.'),
  }),
)

/** When an achievement is unlocked: docs/achievements.md. */
export const Criteria = grammar(
  'Criteria',
  'A value of the user and the target that it must reach. `event_count` takes `event_name`, `property_value` takes `property_key`.',
  {
    type: documented(
      { type: 'string', enum: ['event_count', 'streak_length', 'xp_threshold', 'property_value'] },
      'Counts',
      'What is measured: events of one name, the longest streak, the XP total, or a number among the properties of the user.',
    ),
    target_value: documented({ type: 'number' }, 'Target', 'The value at which it unlocks.'),
    event_name: documented(text, 'Event', 'The event that counts, such as `lesson_completed`.'),
    event_filter: documented(
      { anyOf: [referTo('Filter'), { type: 'null' }] },
      'Only events that match',
      'A filter on the properties of the event.',
    ),
    since: documented({ type: ['string', 'null'] }, 'Since', 'Only events from this moment on.'),
    streak_definition_id: documented(
      { type: ['string', 'null'] },
      'Streak',
      'The id of one streak; any streak if left out.',
    ),
    property_key: documented(text, 'Property', 'The property of the user, a path such as `stats.wins`.'),
  },
)

const days = {
  anyOf: [text, { type: 'object', properties: { days_ago: documented(whole, 'Days ago', 'Counted back from now.') } }],
}

/** Who belongs to a segment: docs/segments.md. */
export const SegmentRules = grammar(
  'SegmentRules',
  'A condition on a user, or a group of conditions: one of `and`, `or` and `not`. `source` says what the condition is about.',
  {
    ...groups('SegmentRules'),
    source: documented(
      text,
      'About',
      '`user`, `property`, `event`, `streak`, `xp`, `level`, `currency`, `inventory`, `achievement`, `role`, `challenge`, `entitlement` or `segment`.',
    ),
    column: documented(
      text,
      'Field',
      'A field of the user or a property, by path; of events the number that is summed.',
    ),
    op: documented(
      text,
      'Comparison',
      'As in filters; `in` and `not_in` another segment, `active` and `inactive` of an entitlement.',
    ),
    value: documented({}, 'Value', 'What it is compared with; a time may be `{"days_ago": 7}`.'),
    key: documented(text, 'Key', 'Of the streak, currency, item, achievement, role or challenge.'),
    event_name: documented(text, 'Event', 'The event that is measured.'),
    measure: documented(
      { type: 'string', enum: ['count', 'sum', 'min', 'max', 'first_at', 'last_at'] },
      'Measure',
      'What is taken of the events: their number, a sum of a property, the time of the last.',
    ),
    within_days: documented({ type: 'number' }, 'Within days', 'Only events of the last days, such as 7.'),
    since: documented(days, 'Since', 'Only events from this moment on.'),
    until: documented(days, 'Until', 'Only events before this moment.'),
    where: documented(referTo('Filter'), 'Only events that match', 'A filter on the properties of the event.'),
    entitlement_id: documented(text, 'Entitlement', 'The id of an entitlement.'),
    segment_id: documented(text, 'Segment', 'The id of another segment.'),
  },
)

const timeOrNull = { type: ['string', 'null'] }

/** Who gets which value of a flag: docs/flags.md. */
export const FlagRule = item('FlagRule', 'A value, and who gets it: all of the conditions that are set must hold.', {
  value: documented({}, 'Value', 'What these users get, of the type of the flag.'),
  segment_id: documented(timeOrNull, 'Segment', 'Users who are in this segment at the moment.'),
  filter: documented(
    { anyOf: [referTo('Filter'), { type: 'null' }] },
    'Users that match',
    'A filter on users: `email`, `platform`, `app_version` and the like, or a property.',
  ),
  percentage: documented(
    { type: ['number', 'null'] },
    'Share of users',
    'In percent, 0 to 100; raising it only adds users.',
  ),
  starts_at: documented(timeOrNull, 'From', 'Before this moment the rule does not apply.'),
  ends_at: documented(timeOrNull, 'Until', 'From this moment on the rule does not apply.'),
  min_app_version: documented(
    timeOrNull,
    'App version from',
    'This version of the app and later ones, such as `1.10`.',
  ),
  platforms: documented(
    { anyOf: [listOf(text), { type: 'null' }] },
    'Platforms',
    'Any of these, such as `ios` and `android`.',
  ),
})

/** A change of a flag at a moment: docs/flags.md. */
export const FlagStep = item('FlagStep', 'A change of the flag at a moment.', {
  at: documented(text, 'At', 'The moment, such as `2026-12-01T08:00:00Z`.'),
  patch: documented(
    {
      type: 'object',
      additionalProperties: {},
      properties: {
        is_enabled: documented({ type: 'boolean' }, 'On', 'Switches the flag on or off.'),
        off_value: documented({}, 'Value when off', 'Replaces it.'),
        default_value: documented({}, 'Value for everybody else', 'Replaces it.'),
        rules: documented(listOf(referTo('FlagRule')), 'Rules', 'Replaces all rules.'),
        rule_index: documented(whole, 'Rule', 'Which rule, counted from 0, gets the percentage.'),
        percentage: documented({ type: 'number' }, 'Share of users', 'In percent, for the rule.'),
      },
    },
    'Change',
    'What is different from then on.',
  ),
})
