import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { anyone } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { data } from '#server/http/schemas.ts'

const Part = z.enum(['ok', 'failing'])
const Health = z.strictObject({
  status: z.enum(['ok', 'degraded', 'failing']),
  version: z.literal('1.0.0'),
  parts: z.strictObject({ database: Part, template: Part, tenants: Part }),
  // how many projects have lost their database, and the first of them
  gone: z.strictObject({ count: z.int(), projects: z.array(z.string()) }).optional(),
})

type Found = { readonly has_template: boolean; readonly gone: number; readonly projects: readonly string[] }

/** Other projects are served while one has lost its database: that is 200, so that a load balancer does not remove the server. */
const healthOf = (found: Found | null): z.input<typeof Health> => {
  const word = (isOk: boolean) => (isOk ? 'ok' : 'failing')
  const parts = {
    database: word(found !== null),
    template: word(found?.has_template === true),
    tenants: word(found?.gone === 0),
  } as const
  const serves = parts.database === 'ok' && parts.template === 'ok'
  const status = serves ? (parts.tenants === 'ok' ? 'ok' : 'degraded') : 'failing'
  const gone = found && found.gone > 0 ? { gone: { count: found.gone, projects: [...found.projects] } } : {}
  return { status, version: '1.0.0', parts, ...gone }
}

/** Never cached: one statement in the control database, with a limit of two seconds. */
export const health = area({
  stem: 'health',
  title: 'Health',
  part: 'Platform',
  about: 'Whether the server and its databases answer.',
  codes: 'by area',
  unversioned: true,
  routes: [
    ...group('/health', { ...anyone, refusals: {} }, [
      route('GET /', 'Health of the service, its failing parts, and the projects that have lost their database', {
        replies: { 200: data(Health), 503: data(Health) },
        ceiling: 'none',
        async handle({ services }) {
          const { database, control } = services
          const settings = { readOnly: true, timeoutMs: 2000 }
          const found = await database
            .call(control, 'control_worker', { caller: 'worker' }, 'health', {}, settings)
            .then(
              (reply) => dataOf<Found>(reply),
              () => null,
            )
          const health = healthOf(found)
          return { status: health.status === 'failing' ? 503 : 200, body: JSON.stringify({ data: health }) }
        },
        failure: null,
      }),
    ]),
  ],
})
