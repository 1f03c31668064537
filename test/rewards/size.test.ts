import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const { admin } = await (await startHarness()).project()

/** Requests that say what a user is given, with the field in which it stands. */
const requests: Readonly<Record<string, (reward: object) => [path: string, body: object, field: string]>> = {
  streaks: (reward) => [
    '/streaks',
    { key: 'daily', name: 'Daily', qualifying_event: 'practised', milestones: [{ count: 1, reward }] },
    'milestones.0.reward',
  ],
  challenges: (reward) => [
    '/challenges',
    {
      name: 'Much',
      start_at: '2026-01-01T00:00:00Z',
      end_at: '2027-01-01T00:00:00Z',
      goal_type: 'xp_earned',
      goal_value: 1,
      reward,
    },
    'reward',
  ],
  leaderboards: (reward) => [
    '/leaderboards',
    { key: 'board', name: 'Board', rewards: [{ from_rank: 1, to_rank: 1, reward }] },
    'rewards.0.reward',
  ],
  catalog: (reward) => [
    '/catalog',
    { key: 'chest', name: 'Chest', item_type: 'consumable', use_effect: reward },
    'use_effect',
  ],
}

/** 3,000 parts took the transaction of an event longer than a request may last, and with it all events of the user. */
const ofParts = (count: number) => ({
  currencies: Array.from({ length: count }, () => ({ currency_code: 'COINS', amount: 1 })),
})

test.each(Object.entries(requests))('what %s give has at most 8192 characters', async (_, requestOf) => {
  const [path, body, field] = requestOf(ofParts(3000))
  expectRefusal(await admin.post(path, body), 400, 'VALIDATION_ERROR', field)
  expect((await admin.post(path, requestOf(ofParts(150))[1])).status).toBe(201)
})

test('what a level gives has at most 8192 characters', async () => {
  const table = (reward: object) => ({ levels: [{ level: 1, xp_required: 0, reward }] })
  expectRefusal(await admin.put('/xp/levels', table(ofParts(3000))), 400, 'VALIDATION_ERROR', 'levels.0.reward')
  expect((await admin.put('/xp/levels', table(ofParts(150)))).status).toBe(200)
})
