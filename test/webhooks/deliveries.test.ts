import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { expectRefusal } from '#test/support/refusals.ts'
import { answering, startWebhooks } from '#test/support/webhooks.ts'

const webhooks = await startWebhooks()
const { harness, project, receiver, watch, fire, all, say, giveUp } = webhooks

const list = (id: string, query = '') => project.admin.get(`/webhooks/${id}/deliveries${query}`)
const detail = (id: string) => project.admin.get(`/webhooks/deliveries/${id}`)

describe('the list of deliveries', () => {
  test('is newest first, each with its attempt log', async () => {
    const hook = await watch()
    const other = await watch({ event_name: 'other' })
    const [first] = await fire()
    await fire(1, 'other')
    say(answering(500, {}, 'broken'))
    await project.drain()
    harness.advance(10)
    say(answering(200))
    const [second] = await fire()
    await project.drain()
    const answer = await list(hook.id)
    expect(answer.status).toBe(200)
    const [, , newest] = await all()
    expect(answer.body).toEqual({
      data: [
        {
          id: newest.id,
          webhook_id: hook.id,
          event_id: second,
          event_name: 'paid',
          idempotency_key: expect.any(String),
          status: 'delivered',
          failed_reason: null,
          attempt_count: 1,
          next_attempt_at: null,
          held_until: null,
          created_at: '2026-12-01T10:00:10.000Z',
          settled_at: '2026-12-01T10:00:10.000Z',
          attempts: [
            { n: 1, at: '2026-12-01T10:00:10.000Z', status_code: 200, error: null, duration_ms: expect.any(Number) },
          ],
        },
        expect.objectContaining({
          event_id: first,
          attempt_count: 2,
          attempts: [
            expect.objectContaining({ n: 1, status_code: 500, at: webhooks.start }),
            expect.objectContaining({ n: 2, status_code: 200, at: '2026-12-01T10:00:10.000Z' }),
          ],
        }),
      ],
      pagination: { next_cursor: null, total: null },
    })
    expect((await list(other.id)).data).toHaveLength(1)
  })

  test('comes in pages, none twice and none left out, also among those of one moment', async () => {
    const hook = await watch()
    for (let times = 0; times < 5; times += 1) {
      await fire(5)
      harness.advance(0.001)
    }
    const seen: string[] = []
    let cursor: string | null = ''
    let pages = 0
    while (cursor !== null) {
      const { body, status }: any = await list(hook.id, `?limit=3${cursor && `&cursor=${cursor}`}`)
      expect(status).toBe(200)
      seen.push(...body.data.map(({ id }: { id: string }) => id))
      cursor = body.pagination.next_cursor
      pages += 1
      // deliveries that are queued between pages do not shift the following pages
      if (pages === 2) await fire(3)
    }
    const rows = await all()
    expect(pages).toBe(9)
    expect(seen).toEqual(
      rows
        .slice(0, 25)
        .reverse()
        .map(({ id }) => id),
    )
    expect((await list(hook.id, '?limit=25')).body.data).toHaveLength(25)
    expect((await list(hook.id, '?limit=1000')).body.data).toHaveLength(28)
  })

  test('is filtered by status and by since, which is included', async () => {
    const hook = await watch()
    await giveUp(2)
    harness.advance(60)
    await fire(3)
    const statuses = async (query: string) =>
      (await list(hook.id, query)).data.map(({ status }: { status: string }) => status)
    expect(await statuses('?status=dlq')).toEqual(['dlq', 'dlq'])
    expect(await statuses('?status=pending')).toEqual(['pending', 'pending', 'pending'])
    expect(await statuses('?status=delivered')).toEqual([])
    expect(await statuses('?since=2026-12-01T10:01:00Z')).toHaveLength(3)
    expect(await statuses('?since=2026-12-01T10:01:00.001Z')).toHaveLength(0)
    expect(await statuses('?since=2026-12-01T12:00:00%2B02:00')).toHaveLength(5)
    expect(await statuses('?since=2026-12-01&status=dlq')).toHaveLength(2)
    const page = await list(hook.id, '?status=dlq&limit=1')
    const next = await list(hook.id, `?status=dlq&limit=1&cursor=${page.body.pagination.next_cursor}`)
    expect([next.data[0].status, next.body.pagination.next_cursor]).toEqual(['dlq', null])
    expect(next.data[0].id).not.toBe(page.data[0].id)
  })

  test.each([
    ['limit=0', 'limit'],
    ['limit=x', 'limit'],
    ['status=lost', 'status'],
    ['since=yesterday', 'since'],
    ['since=2026-02-30', 'since'],
    ['since=', 'since'],
    ['cursor=x', 'cursor'],
    [`cursor=${'f'.repeat(48)}`, 'cursor'],
    ['cursor=', 'cursor'],
  ])('refuses ?%s', async (query, field) => {
    expectRefusal(await list((await watch()).id, `?${query}`), 400, 'INVALID_INPUT', field)
  })
})

describe('one delivery', () => {
  test('shows the payload and the responses', async () => {
    const hook = await watch()
    await fire()
    say(answering(500, {}, 'é'.repeat(5000)))
    await project.drain()
    harness.advance(10)
    say((response) => response.destroy())
    await project.drain()
    const [row] = await all()
    const answer = await detail(row.id)
    expect(answer.status).toBe(200)
    expect(answer.data).toMatchObject({
      id: row.id,
      webhook_id: hook.id,
      status: 'pending',
      attempt_count: 2,
      next_attempt_at: row.next_attempt_at.toISOString(),
      payload: JSON.parse(row.payload),
      attempts: [
        { n: 1, status_code: 500, error: null, response_excerpt: 'é'.repeat(512) },
        { n: 2, status_code: null, error: 'connection closed', response_excerpt: '' },
      ],
    })
    // the payload is shown byte for byte as it was sent, not parsed and serialised again
    expect(answer.text).toContain(row.payload)
    expect(answer.data.idempotency_key).toBe(receiver.requests[0]!.headers['x-service-idempotency-key'])
  })

  test('is not found under another id, in another project, or under none', async () => {
    await watch()
    await fire()
    const [{ id }] = await all()
    const other = await harness.project({ developer: project.developer })
    for (const call of [
      (client: typeof project.admin, of: string) => client.get(`/webhooks/deliveries/${of}`),
      (client: typeof project.admin, of: string) => client.post(`/webhooks/deliveries/${of}/replay`),
    ]) {
      expectRefusal(await call(other.admin, id), 404, 'NOT_FOUND')
      expectRefusal(await call(project.admin, randomUUID()), 404, 'NOT_FOUND')
      expectRefusal(await call(project.admin, 'x'), 400, 'INVALID_ID', 'deliveryId')
    }
  })
})
