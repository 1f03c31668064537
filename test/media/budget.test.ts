import { describe, expect, test } from 'vitest'
import { startHarness, type User } from '#test/support/harness.ts'
import { put, refusedWith, register, setTier, storedOf } from '#test/support/media.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { meetingBehind } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
const paid = await harness.project()
await setTier(harness, paid, 'pro')

const MB = 1048576

describe('free projects', () => {
  const registerAs = (user: User, size_bytes: number) =>
    user.post('/client/media/upload', { filename: 'a', mime_type: 'text/plain', size_bytes })

  test('have 250 MB, counted from the registration, exact under fifty callers', async () => {
    const own = await harness.project()
    const users = await Promise.all(Array.from({ length: 5 }, () => own.user()))
    const answers = await meetingBehind(own.database, `select internal.advisory_lock('media budget')`, () =>
      Array.from({ length: 50 }, (_, n) => registerAs(users[n % 5] as User, 25 * MB)),
    )
    const statuses = answers.map(({ status }) => status)
    expect([
      statuses.filter((status) => status === 201).length,
      statuses.filter((status) => status === 402).length,
    ]).toEqual([10, 40])
    const user = users[0] as User
    expectRefusal(await registerAs(user, 1), 402, 'FREE_TIER_LIMIT_REACHED', {
      limit: 'media_storage',
      used: 250 * MB,
      max: 250 * MB,
    })
    // the sums are those of the rows
    const sums = () =>
      own.sql(
        `select (select sum(registered_bytes)::int from app.media_totals) as counted,
                (select coalesce(sum(size_bytes), 0)::int from app.media_assets where status <> 'deleted') as real,
                (select sum(stored_bytes)::int from app.media_totals) as stored`,
      )
    expect(await sums()).toEqual([{ counted: 250 * MB, real: 250 * MB, stored: 0 }])
    // a paid project has no budget; back on the free tier its files count
    await setTier(harness, own, 'pro')
    expect((await registerAs(user, 5)).status).toBe(201)
    await setTier(harness, own, 'free')
    expectRefusal(await registerAs(user, 1), 402, 'FREE_TIER_LIMIT_REACHED')
    // deleting a user frees what was registered
    await own.admin.delete(`/users/${user.id}`)
    const [left] = await sums()
    expect(left.counted).toBe(left.real)
    expect(left.real).toBeLessThanOrEqual(225 * MB)
    expect((await registerAs(users[1] as User, 25 * MB)).status).toBe(201)
  })

  test('keep what is registered while its upload URL is valid', async () => {
    harness.setTime('2026-11-22T10:00:00Z')
    const user = await project.user()
    const { id, uploadUrl } = await register(user)
    harness.setTime('2026-11-22T10:04:00Z')
    const refused = await user.delete(`/client/media/${id}`)
    expectRefusal(refused, 409, 'UPLOAD_WINDOW_OPEN', { retry_after_seconds: 360 })
    expectRefusal(await project.admin.delete(`/media/${id}`), 409, 'UPLOAD_WINDOW_OPEN')
    expect(refused.headers.get('retry-after')).toBe('360')
    harness.setTime('2026-11-22T10:10:00Z')
    expect((await user.delete(`/client/media/${id}`)).status).toBe(200)
    expect(await refusedWith(await put(uploadUrl, 'hello'))).toEqual([403, 'FORBIDDEN'])
    // a paid project deletes at once, and the URL is worth nothing then
    const payer = await paid.user()
    const pending = await register(payer)
    await put(pending.uploadUrl, 'hello')
    expect((await payer.delete(`/client/media/${pending.id}`)).status).toBe(200)
    expect(await refusedWith(await put(pending.uploadUrl, 'hello'))).toEqual([403, 'FORBIDDEN'])
    expect((await storedOf(harness, paid)).filter((name) => name.includes(pending.id))).toEqual([])
    harness.setTime(null)
  })
})
