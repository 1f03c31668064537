import fc from 'fast-check'
import { expect, test } from 'vitest'
import { targetOf } from '#server/database/cluster.ts'
import { createPools, type Lease } from '#server/database/pools.ts'
import { shareOf } from '#server/database/shares.ts'
import { startHarness } from '#test/support/harness.ts'

/** Whatever happens to connections, what they counted is counted back: no share of a database shrinks as time goes by. */
const harness = await startHarness()
const projects = [await harness.project(), await harness.project()] as const
const { services } = harness.running
const { cluster, database: control } = services.control

const roles = ['app_user', 'app_anon', 'app_auth', 'app_server', 'app_admin', 'app_worker'] as const
const places = [projects[0].database, projects[1].database, control, 'there_is_no_such_database'] as const

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('lease' as const),
      place: fc.nat(places.length - 1),
      role: fc.constantFrom(...roles),
      user: fc.option(fc.constantFrom('ann', 'bob')),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('release' as const), at: fc.nat(20), broken: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('end' as const, 'cancel' as const), at: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('forget' as const), place: fc.nat(places.length - 1) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.nat(12) }) },
)

const limits = fc.constantFrom(
  { total: 10, perTenant: 2 },
  { total: 10, perTenant: 3 },
  { total: 10, perTenant: 10 },
  { total: 24, perTenant: 6 },
)

const keyOf = (database: string) => `${cluster.id}/${database}`

test('after any sequence of leases, failures and time-outs everything is there again', {
  timeout: 180_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(limits, fc.array(step, { minLength: 10, maxLength: 60 }), async (bounds, steps) => {
      const pools = createPools({ ...bounds, waitMs: 8, idleMs: 60_000, callsPerConnection: 5 })
      const held: Lease[] = []
      const asked: Promise<unknown>[] = []
      const leaseOf = (place: string, role: (typeof roles)[number], user: string | null) => {
        const login = place === control ? 'control_auth' : role
        const target = { ...targetOf(cluster, place, login, services.secrets), isControl: place === control }
        return pools.lease(target, shareOf(login, undefined), user)
      }
      for (const each of steps) {
        if (each.do === 'lease') {
          asked.push(
            leaseOf(places[each.place] ?? control, each.role, each.user).then(
              (lease) => held.push(lease),
              () => undefined,
            ),
          )
        } else if (each.do === 'pass') await new Promise((resolve) => setTimeout(resolve, each.ms))
        else if (each.do === 'forget') await pools.forget(keyOf(places[each.place] ?? control))
        else if (each.do === 'release') {
          for (const lease of held.splice(each.at % (held.length || 1), 1)) {
            lease.release(each.broken)
            lease.release()
          }
        } else {
          const lease = held[each.at % (held.length || 1)]
          if (lease && each.do === 'end') await harness.endConnection(lease.client).catch(() => undefined)
          if (lease && each.do === 'cancel') void lease.client.query('select pg_sleep(0)').catch(() => undefined)
        }
      }
      // whoever waits is served or refused; what is served late is given back as well
      for (let rest = asked.length; rest > 0; rest = asked.length) {
        const waiting = Promise.all(asked.splice(0))
        for (const lease of held.splice(0)) lease.release()
        await waiting
      }
      for (const lease of held.splice(0)) lease.release()

      const most = async (pool: typeof pools, role: (typeof roles)[number], user: string | null) => {
        const leases: Lease[] = []
        const take = async (): Promise<number> => {
          const target = targetOf(cluster, projects[0].database, role, services.secrets)
          const lease = await pool.lease(target, shareOf(role, undefined), user).catch(() => null)
          if (!lease) return leases.length
          leases.push(lease)
          return take()
        }
        const count = await take()
        for (const lease of leases) lease.release()
        return count
      }
      const fresh = createPools({ ...bounds, waitMs: 8 })
      for (const [role, user] of [
        ['app_user', null],
        ['app_user', 'ann'],
        ['app_auth', null],
        ['app_admin', null],
        ['app_worker', 'bob'],
      ] as const)
        expect(await most(pools, role, user), `${role} ${user}`).toBe(await most(fresh, role, user))
      await Promise.all([pools.close(), fresh.close()])
      await expect.poll(() => [pools.open, fresh.open]).toEqual([0, 0])
    }),
    { numRuns: 15 },
  )
})
