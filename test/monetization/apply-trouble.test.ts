import { describe, expect, test } from 'vitest'
import { type ProviderState, writeKey } from '#test/support/monetization.ts'
import { shop, sold, startApplies } from '#test/support/monetization_applies.ts'

const { provider, project, declare, planned, apply, run, applied } = await startApplies()

describe('a provider in trouble', () => {
  const steady: Partial<ProviderState> = {}
  const isWrite = ({ method }: { method: string }) => method !== 'GET'

  test.each([
    ['500 without effect', 'before', { status: 500 }],
    ['500 after the effect', 'after', { status: 500 }],
    ['a lost answer', 'after', 'hang up'],
    ['a lost request', 'before', 'hang up'],
    ['423 without effect', 'before', { status: 423 }],
    ['429 with Retry-After', 'before', { status: 429, headers: { 'retry-after': '0' } }],
    ['an answer without an id', 'after', { status: 201, body: '{}' }],
  ] as const)('%s at every write changes nothing about the end', async (_, when, reply) => {
    provider.reset(steady)
    await declare(shop)
    const { plan_hash } = await planned()
    const { data } = await apply({ plan_hash })
    const troubled = new Set<string>()
    provider.interfere((call) => {
      const name = `${call.method} ${call.path} ${JSON.stringify(call.body)}`
      if (!isWrite(call) || troubled.has(name) || troubled.size > 6) return null
      troubled.add(name)
      return { when, reply: reply as never }
    })
    expect(await run(data.operation_id)).toMatchObject({ status: 'succeeded' })
    expect(troubled.size).toBeGreaterThan(4)
    expect(provider.shown()).toEqual(sold)
    expect(new Set(provider.created).size).toBe(provider.created.length)
  })

  test('stops at the first failure, without rollback, and goes on from there in the next apply', async () => {
    await declare(shop)
    const { plan_hash } = await planned()
    const { data } = await apply({ plan_hash })
    provider.interfere(({ method, path }) =>
      method === 'POST' && path.endsWith('/offerings')
        ? {
            when: 'before',
            reply: { status: 422, body: { object: 'error', type: 'unprocessable_entity_error', message: writeKey } },
          }
        : null,
    )
    const failed = await run(data.operation_id)
    expect(failed).toMatchObject({
      status: 'failed',
      progress: { done: 6, total: 13 },
      failed_reason: 'PROVIDER_WRITE_FAILED: create offering default: status 422 unprocessable_entity_error.',
    })
    expect(provider.created).toEqual([
      'product com.x.monthly',
      'product com.x.yearly',
      'product monthly:base',
      'entitlement premium',
    ])
    provider.interfere(() => null)
    // what was done counts as applied: nothing has drifted
    const plan = await planned()
    expect([plan.drift, plan.ops.length]).toEqual([[], 7])
    expect((await applied()).ended).toMatchObject({ status: 'succeeded' })
    expect(provider.shown()).toEqual(sold)
  })

  test('that cannot be read ends the operation', async () => {
    await declare(shop)
    const { data } = await apply({ plan_hash: (await planned()).plan_hash })
    provider.interfere(() => ({ when: 'before', reply: { status: 401 } }))
    expect(await run(data.operation_id)).toMatchObject({
      status: 'failed',
      failed_reason: 'PROVIDER_READ_FAILED: status 401.',
    })
  })

  test('that is disconnected meanwhile ends the operation', async () => {
    await declare(shop)
    const { data } = await apply({ plan_hash: (await planned()).plan_hash })
    await project.admin.patch('/integrations/revenuecat', { is_active: false })
    expect(await run(data.operation_id)).toMatchObject({
      status: 'failed',
      failed_reason: expect.stringContaining('revenuecat'),
    })
    await project.admin.patch('/integrations/revenuecat', { is_active: true })
  })
})
