import { randomUUID } from 'node:crypto'
/** One request of a developer below the project, such as `ask('POST', '/streaks', {...})`; resolves with the answer's data. */
export type Ask = (method: string, path: string, body?: unknown) => Promise<any>

const first = ['Ada', 'Noor', 'Liam', 'Zoe', 'Mateo', 'Yuki', 'Ines', 'Omar', 'Freya', 'Kofi', 'Mila', 'Theo', 'Aisha']
const last = ['Kowalski', 'Okafor', 'Tanaka', 'Silva', 'Novak', 'Haddad', 'Lindqvist', 'Moreau', 'Patel', 'Ferrari']
const countries = ['DE', 'JP', 'BR', 'NG', 'FR', 'US', 'IN']

/** The same numbers in every run, so that pictures can be compared. */
const randomOf = (seed: number) => () => {
  seed = (seed * 1_664_525 + 1_013_904_223) % 4_294_967_296
  return seed / 4_294_967_296
}

/** What the filled project has, as tests name it. */
export type Filled = {
  readonly users: readonly { readonly id: string; readonly display_name: string; readonly email: string }[]
  readonly board: { readonly id: string }
  readonly streak: { readonly id: string }
  readonly flag: { readonly id: string }
  readonly webhook: { readonly id: string }
  readonly segment: { readonly id: string }
  readonly flow: { readonly id: string }
}

const onboardingSteps = [
  { id: 'welcome', type: 'info', title: 'Welcome' },
  {
    id: 'instrument',
    type: 'question',
    title: 'What do you play?',
    config: {
      options: [
        { id: 'piano', label: 'Piano' },
        { id: 'violin', label: 'Violin' },
      ],
      multiple: true,
    },
  },
  { id: 'reminders', type: 'permission', title: 'May we remind you?', config: { kind: 'push' }, skippable: true },
]

/** Texts of the app; the last of them stands first in the list. */
const entries = [
  ['imprint', 'page', { title: 'Imprint' }],
  ['practice-tips', 'article', { title: 'Tips for practice', text: 'Play slowly.\nPlay often.', minutes: 3 }],
  ['welcome', 'banner', { title: 'Welcome', text: 'Good to have you here.', is_large: true }],
] as const

const monetization = {
  products: [
    {
      key: 'monthly',
      store: 'app_store',
      store_identifier: 'com.example.monthly',
      type: 'subscription',
      display_name: 'Pro, a month',
    },
    {
      key: 'yearly',
      store: 'app_store',
      store_identifier: 'com.example.yearly',
      type: 'subscription',
      display_name: 'Pro, a year',
    },
  ],
  entitlements: [{ key: 'pro', display_name: 'Pro', description: 'All lessons', product_keys: ['monthly', 'yearly'] }],
  offerings: [
    {
      key: 'default',
      display_name: 'Usual',
      is_current: true,
      packages: [
        { offering_key: 'default', key: '$rc_monthly', product_key: 'monthly' },
        { offering_key: 'default', key: '$rc_annual', product_key: 'yearly' },
      ],
    },
  ],
}

const definitions: readonly (readonly [string, object])[] = [
  ['/xp/rules', { key: 'lesson', name: 'Lesson', event_name: 'lesson_completed', amount: 10, max_per_day: 100 }],
  ['/xp/rules', { key: 'quiz', name: 'Quiz passed', event_name: 'quiz_passed', amount: 25 }],
  [
    '/achievements',
    {
      key: 'first-lesson',
      name: 'First lesson',
      xp_reward: 20,
      criteria: { type: 'event_count', event_name: 'lesson_completed', target_value: 1 },
    },
  ],
  [
    '/achievements',
    {
      key: 'ten-lessons',
      name: 'Ten lessons',
      xp_reward: 50,
      criteria: { type: 'event_count', event_name: 'lesson_completed', target_value: 10 },
    },
  ],
  ['/currencies', { code: 'COINS', name: 'Coins', initial_grant: 20 }],
  [
    '/currencies',
    { code: 'ENERGY', name: 'Energy', initial_grant: 5, regen: { amount: 1, every_seconds: 600, cap: 5 } },
  ],
  [
    '/catalog',
    {
      key: 'potion',
      name: 'Streak potion',
      item_type: 'consumable',
      tags: ['healing'],
      use_effect: { freezes: [{ streak_key: 'daily', amount: 1 }] },
      prices: [{ currency_code: 'COINS', price: 30 }],
    },
  ],
  ['/catalog', { key: 'metronome', name: 'Golden metronome', item_type: 'durable', tags: ['gear'] }],
  [
    '/catalog',
    {
      key: 'starter',
      name: 'Starter bundle',
      item_type: 'bundle',
      category: 'bundles',
      prices: [{ currency_code: 'COINS', price: 80 }],
      bundle_contents: [
        { content_item_key: 'potion', quantity: 3 },
        { content_item_key: 'metronome', quantity: 1 },
      ],
    },
  ],
  ['/stores', { key: 'main', name: 'Practice shop' }],
  [
    '/stores/main/offers',
    { key: 'potions', catalog_item_key: 'potion', quantity: 3, limit_per_user: 1, limit_period: 'day' },
  ],
  [
    '/stores/main/offers',
    {
      key: 'starter',
      catalog_item_key: 'starter',
      prices: [{ currency_code: 'COINS', price: 60, original_price: 80 }],
      badge: 'Best value',
      stock_total: 500,
    },
  ],
  [
    '/leagues',
    {
      key: 'weekly',
      name: 'League of the week',
      tiers: [
        { key: 'bronze', name: 'Bronze', promote_count: 10 },
        { key: 'silver', name: 'Silver', promote_count: 7, relegate_count: 5 },
        { key: 'gold', name: 'Gold', relegate_count: 5 },
      ],
      rewards: [{ tier_key: 'gold', from_rank: 1, to_rank: 3, reward: { xp: 100 } }],
    },
  ],
  ['/leaderboards', { key: 'xp-ever', name: 'Most XP', source: { type: 'xp' }, scoring: 'last', period: 'all_time' }],
  ['/config', { key: 'lesson_length', value: 10, value_type: 'number', conditions: [{ percentage: 20, value: 15 }] }],
  ['/config', { key: 'welcome_text', value: 'Welcome back', value_type: 'string' }],
  ['/config', { key: 'sale_banner', value: false, value_type: 'boolean', description: 'The banner of the sale' }],
  ['/ai/providers', { name: 'openai', api_key: 'sk-of-nobody' }],
  [
    '/ai/prompts',
    {
      name: 'teacher',
      provider: 'openai',
      model: 'gpt-4o-mini',
      description: 'Explains a piece in the practice room',
      system_prompt: 'You teach {{user.display_name|a beginner}} to play {{piece|the piano}}.',
      client_invokable: true,
    },
  ],
  ['/media/folders', { name: 'Covers' }],
  [
    '/flags',
    { key: 'dark_practice', name: 'Dark practice room', value_type: 'boolean', default_value: false, is_active: true },
  ],
  [
    '/moderation/rules',
    {
      name: 'No casino spam',
      rule_type: 'keyword',
      config: { words: ['casino'], match: 'word', applies_to: ['display_name'], action: 'queue' },
    },
  ],
  [
    '/push/templates',
    {
      key: 'streak-reminder',
      message: { title: 'Your streak ends today', body: 'Keep it alive, {{display_name|friend}}.' },
    },
  ],
  [
    '/email/templates',
    {
      key: 'receipt',
      name: 'Receipt',
      subject: 'Your receipt, {{name|friend}}',
      html: '<p>You paid {{amount}}.</p>',
      text: 'You paid {{amount}}.',
    },
  ],
  ['/roles', { key: 'moderator', name: 'Moderator', permissions: ['posts:delete', 'users:mute'] }],
  ['/referrals', { code: 'SPRING-24', reward_referee: { xp: 100 }, max_uses: 500 }],
  ['/media/catalogs', { slug: 'covers', name: 'Covers' }],
  ['/media/buckets', { name: 'avatars', is_public: true, allowed_mime_types: ['image/*'] }],
  ['/media/buckets', { name: 'invoices', file_size_limit: 1_048_576, allowed_mime_types: ['application/pdf'] }],
  ['/feeds', { system: true, action: 'season.started' }],
]

const songs = {
  name: 'songs',
  columns: [
    { name: 'title', type: 'text', max_length: 200, required: true },
    { name: 'composer', type: 'text', max_length: 120 },
    { name: 'level', type: 'integer' },
    { name: 'minutes', type: 'numeric' },
    { name: 'is_free', type: 'boolean' },
  ],
}

/**
 * Fills a project as if its app had run for four weeks: users, their events, and definitions of each kind. `size` is the number of users. Events carry their time of
 * occurrence; some 28 a user.
 */
export const fillProject = async (ask: Ask, now: Date, size = 200, rows = 400): Promise<Filled> => {
  const random = randomOf(7)
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
  const streak = await ask('POST', '/streaks', {
    key: 'daily',
    name: 'Daily practice',
    qualifying_event: 'lesson_completed',
    period: 'day',
  })
  const board = await ask('POST', '/leaderboards', {
    key: 'weekly-points',
    name: 'Points of the week',
    source: { type: 'event', event_name: 'lesson_completed', value_property: 'points' },
    scoring: 'sum',
    period: 'weekly',
    rewards: [{ from_rank: 1, to_rank: 3, reward: { xp: 100 } }],
  })
  for (const [path, body] of definitions) await ask('POST', path, body)
  const flow = await ask('POST', '/onboarding/flows', { name: 'First steps', steps: onboardingSteps })
  await ask('PUT', '/xp/levels', { generate: { count: 12, base: 100, exponent: 1.5 } })
  await ask('PUT', '/monetization/definitions', { monetization })
  const flag = await ask('POST', '/flags', {
    key: 'new_checkout',
    name: 'New checkout',
    rules: [{ filter: { column: 'plan.tier', op: 'eq', value: 'pro' }, percentage: 20, value: true }],
  })
  const start = (days: number) => new Date(now.getTime() + days * 864e5).toISOString()
  await ask('POST', '/challenges', {
    name: 'Autumn sprint',
    start_at: start(-20),
    end_at: start(10),
    goal_type: 'event_count',
    goal_value: 20,
    event_name: 'lesson_completed',
    reward_xp: 100,
  })
  await ask('POST', '/xp/boosts', { name: 'Double weekend', multiplier: 2, starts_at: start(1), ends_at: start(3) })
  const webhook = await ask('POST', '/webhooks', {
    event_name: 'quiz_passed',
    target_url: 'https://1.1.1.1/hook',
    description: 'Mails the teacher',
  })
  const segment = await ask('POST', '/segments', {
    key: 'pro_users',
    name: 'Pro users',
    rules: { and: [{ source: 'property', column: 'plan.tier', op: 'eq', value: 'pro' }] },
  })
  await ask('POST', '/collections', songs)
  for (const [key, content_type, fields] of entries) await ask('POST', '/content', { key, content_type, fields })
  await ask('PUT', '/content/welcome/locales/de', { fields: { title: 'Willkommen', text: 'Schön, dass du da bist.' } })
  await ask('POST', '/content/welcome/locales/en/publish')
  await ask('POST', '/content/welcome/locales/de/publish', { publish_at: start(3) })
  await ask('POST', '/content/practice-tips/locales/en/publish')
  await ask('PUT', '/content/practice-tips/locales/en', {
    fields: { title: 'Five tips for practice', text: 'Play slowly.\nPlay daily.\nRest your hands.', minutes: 4 },
  })
  const users: { id: string; display_name: string; email: string }[] = []
  for (let n = 0; n < size; n += 1) {
    const name =
      n === 3 ? 'Casino Royale' : `${first[n % first.length]} ${last[Math.floor(n / first.length) % last.length]}`
    users.push(
      await ask('POST', '/users', {
        external_id: `cust_${1000 + n}`,
        display_name: name,
        email: `${name.toLowerCase().replace(/ /g, '.')}${n}@example.com`,
        properties: { plan: { tier: random() < 0.3 ? 'pro' : 'free' }, country: pick(countries), app_version: '2.5.0' },
      }),
    )
  }
  const batch: object[] = []
  const minute = 60_000
  for (const user of users) {
    const eagerness = random()
    for (let day = 27; day >= 0; day -= 1) {
      if (random() > eagerness) continue
      const at = now.getTime() - day * 864e5 - Math.floor(random() * 9 * 60) * minute
      const event = (name: string, properties: object, after: number) =>
        batch.push({
          event_name: name,
          app_user_id: user.id,
          occurred_at: new Date(Math.min(at + after * minute, now.getTime())).toISOString(),
          properties,
        })
      event(
        'lesson_completed',
        {
          points: 5 + Math.floor(random() * 40),
          minutes: 5 + Math.floor(random() * 20),
          instrument: pick(['piano', 'guitar', 'violin']),
        },
        0,
      )
      if (random() < 0.35) event('quiz_passed', { score: 60 + Math.floor(random() * 40) }, 12)
    }
  }
  for (let at = 0; at < batch.length; at += 500) await ask('POST', '/events', { events: batch.slice(at, at + 500) })
  const composers = ['Bach', 'Clara Schumann', 'Chopin', 'Debussy', 'Satie', 'Fanny Mendelssohn']
  for (let at = 0; at < rows; at += 100) {
    const page = Array.from({ length: Math.min(100, rows - at) }, (_, n) => ({
      user_id: pick(users).id,
      title: `${pick(['Prelude', 'Nocturne', 'Waltz', 'Étude', 'Gymnopédie'])} No. ${at + n + 1}`,
      composer: pick(composers),
      level: 1 + Math.floor(random() * 9),
      minutes: Math.round(random() * 80) / 10,
      is_free: random() < 0.4,
    }))
    await ask('POST', '/collections/songs/rows/batch', { rows: page })
  }
  for (const user of users.slice(0, 3)) {
    await ask('POST', '/currencies/transactions', {
      app_user_id: user.id,
      adjustments: [{ currency_code: 'COINS', amount: 100 }],
      reason: 'support',
    })
    await ask('POST', '/inventory/grant', { app_user_id: user.id, catalog_item_key: 'potion', reason: 'support' })
  }
  // some coins are spent, and one user has more points than anybody could
  for (const user of users.slice(0, 2))
    await ask('POST', '/currencies/transactions', {
      app_user_id: user.id,
      adjustments: [{ currency_code: 'COINS', amount: -30 }],
      reason: 'hint',
    })
  const cheater = users[5]
  if (cheater) await ask('PUT', `/leaderboards/weekly-points/entries/${cheater.id}`, { score: 250_000 })
  return { users, board, streak, flag, webhook, segment, flow }
}

/** What users of the filled project do themselves, and what a team does about them: sessions, groups, reports, a ban. */
const crashes = [
  {
    kind: 'crash',
    level: 'fatal',
    message: "TypeError: Cannot read properties of undefined (reading 'title')",
    stack:
      '    at LessonCard (app/lesson.tsx:41:18)\n    at renderList (app/list.tsx:12:9)\n    at commit (app/main.js:1:88120)',
  },
  { kind: 'error', level: 'error', message: 'The request timed out after 10 s', stack: '    at send (app/net.ts:7:3)' },
  { kind: 'performance', level: 'warn', message: 'The first frame took 2,140 ms' },
]

export const fillWithUsers = async (
  ask: Ask,
  /** One request of a user, such as `act(userId, 'POST', '/client/sessions/start', {...})`. */
  act: (userId: string, method: string, path: string, body: unknown) => Promise<any>,
  { users, flow }: Filled,
): Promise<void> => {
  const random = randomOf(11)
  const some = users.slice(0, 24)
  for (const [n, user] of some.entries()) {
    const { id } = await act(user.id, 'POST', '/client/sessions/start', {
      platform: n % 3 === 0 ? 'android' : 'ios',
      app_version: `2.${n % 6}.0`,
      device_model: n % 3 === 0 ? 'Pixel 9' : 'iPhone17,1',
    })
    if (n % 4 !== 0) await act(user.id, 'POST', `/client/sessions/${id}/end`, {})
  }
  // who has coins buys for them
  const purchase = { offer_key: 'potions', currency_code: 'COINS', expected_price: 90 }
  for (const user of users.slice(2, 3)) await act(user.id, 'POST', '/client/stores/main/purchase', purchase)
  for (const [n, user] of some.entries()) {
    const reports = crashes.slice(0, 1 + (n % crashes.length)).map((crash, k) => ({
      ...crash,
      app_version: `2.${n % 6}.${k}`,
      os_version: 'iOS 26.1',
      device_model: 'iPhone17,1',
      context: { screen: 'lesson', battery: 0.8 },
    }))
    await act(user.id, 'POST', '/client/diagnostics/reports', { reports })
  }
  for (const [n, user] of some.entries()) {
    const go = (to: string, body = {}) => act(user.id, 'POST', `/client/onboarding/${flow.id}/${to}`, body)
    await go('start')
    if (n % 6 === 5) await go('skip')
    else for (const { id } of onboardingSteps.slice(0, n % 6 === 4 ? 1 : 3)) await go('advance', { step_id: id })
  }
  for (const user of some.slice(2, 9)) await act(user.id, 'POST', '/client/referrals/claim', { code: 'SPRING-24' })
  for (const [n, name] of ['Early birds', 'Duet partners', 'Metronome fans'].entries()) {
    const group = await act((some[n] as { id: string }).id, 'POST', '/client/groups', {
      name,
      description: 'They practise together.',
      is_public: n !== 1,
    })
    for (const user of some.slice(5 + n, 9 + n * 2))
      await ask('POST', `/groups/${group.id}/members`, { app_user_id: user.id })
  }
  const reasons = ['spam', 'abuse', 'spam', 'other', 'sexual', 'violence']
  for (const [n, reason] of reasons.entries())
    await act((some[10 + n] as { id: string }).id, 'POST', '/client/moderation/reports', {
      subject_type: 'user',
      subject_id: (some[n < 3 ? 3 : n] as { id: string }).id,
      reason,
      details: random() < 0.7 ? 'The name is an advertisement.' : undefined,
    })
  await act((some[8] as { id: string }).id, 'PATCH', '/client/users/me', { display_name: 'Best casino in town' })
  for (const [n, user] of some.slice(0, 9).entries())
    await act(user.id, 'PUT', '/client/reviews', {
      subject_type: 'app',
      rating: n % 4 === 3 ? 2 : 5 - (n % 2),
      title: n % 3 === 2 ? undefined : 'I practise more',
      body: 'The streaks keep me going.',
    })
  await ask('POST', '/moderation/trust', {
    app_user_id: (some[0] as { id: string }).id,
    trust_level: 'moderator',
    auto_approve: true,
  })
  await ask('POST', '/roles/moderator/assignments', { app_user_id: (some[0] as { id: string }).id })
  await ask('PATCH', `/users/${(users.at(-1) as { id: string }).id}`, { is_banned: true })
  await ask('POST', `/users/${(some[1] as { id: string }).id}/entitlements`, {
    entitlement_id: 'premium',
    duration_days: 30,
    reason: 'support',
  })
  const vips = await ask('POST', '/segments', { key: 'vips', name: 'Chosen guests', kind: 'static' })
  await ask('POST', `/segments/${vips.id}/members`, { user_ids: some.slice(0, 5).map(({ id }) => id) })
  await ask('PUT', '/events/definitions/quiz_passed', {
    description: 'A quiz was passed',
    schema: { type: 'object', required: ['score'], properties: { score: { type: 'number', maximum: 100 } } },
  })
  await ask('PUT', '/events/definitions/old_lesson', {
    description: 'Sent by versions before 2.0',
    status: 'deprecated',
  })
  const [ada, noor] = some.slice(0, 2) as unknown as [{ id: string }, { id: string }]
  const talk = await act(ada.id, 'POST', '/client/messaging/conversations', { participant_ids: [noor.id] })
  for (const [n, body] of ['Did you play the waltz?', 'Twice, and slowly.', 'Then tomorrow the étude!'].entries())
    await act((n % 2 ? noor : ada).id, 'POST', `/client/messaging/conversations/${talk.id}/messages`, { body })
  await act(noor.id, 'POST', '/client/friends/requests', { user_id: ada.id })
  await ask('POST', '/push/campaigns', {
    name: 'Autumn sprint',
    audience: { segment_id: vips.id },
    message: { title: 'Ten days left', body: 'You are nearly there, {{display_name|friend}}.' },
  })
  await ask('POST', '/push/automations', {
    key: 'come-back',
    trigger: { event_name: 'lesson_completed' },
    delay_seconds: 86_400,
    cancel_if_event: 'lesson_completed',
    template_key: 'streak-reminder',
  })
  await ask('POST', '/email/templates', {
    key: 'news',
    name: 'News',
    category: 'news',
    subject: 'What is new, {{name|friend}}',
    text: 'Three new pieces.',
    html: '<p>Three new pieces.</p>',
  })
  await ask('POST', '/email/campaigns', {
    name: 'News of November',
    audience: { all: true },
    template_key: 'news',
  })
  await ask('PATCH', '/collections/songs', { sync: true })
  for (const [n, user] of some.slice(0, 5).entries()) {
    const client_id = randomUUID()
    await act(user.id, 'POST', '/client/sync/pull', { client_id, checkpoint: null, limit: 1 })
    // what an older version of the app pushes: a row that is gone, a column that there is not
    const wrong = n % 2 ? { op: 'patch', data: {} } : { op: 'put', data: { artist: 'Satie' } }
    const lost = { id: randomUUID(), ...wrong, collection: 'songs', row_id: randomUUID() }
    if (n < 4) await act(user.id, 'POST', '/client/sync/push', { client_id, mutations: [lost] })
  }
  await ask('POST', '/email/suppressions', { address: 'gone@example.com' })
  await ask('POST', '/events/replay', { since: new Date(Date.now() - 5 * 864e5).toISOString(), dry_run: true })
}
