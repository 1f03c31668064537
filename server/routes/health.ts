import { z } from 'zod'
import { anyone } from '#server/http/callers.ts'
import { area, route } from '#server/http/route.ts'
import { data } from '#server/http/schemas.ts'

const Part = z.enum(['ok', 'failing'])
const Health = z.strictObject({
  status: Part,
  version: z.literal('1.0.0'),
  parts: z.strictObject({ database: Part, template: Part }),
})

/** Never a cached answer: one statement in the control database, which must come back within two seconds. */
export const health = area({
  stem: 'health',
  title: 'Health',
  source: 'contract',
  unversioned: true,
  routes: [
    route('GET /health', {
      caller: { ...anyone, refusals: {} },
      summary: 'Whether the service can do its work, and which part cannot',
      replies: { 200: data(Health), 503: data(Health) },
      ceiling: 'none',
      async handle({ services }) {
        const database = await services.database
          .call(
            services.control,
            'control_worker',
            { caller: 'worker' },
            'cluster_list',
            {},
            { readOnly: true, timeoutMs: 2000 },
          )
          .then(
            (reply) => (reply.body.includes('"content_hash"') ? 'ok' : 'template'),
            () => 'failing',
          )
        const parts = {
          database: database === 'failing' ? 'failing' : 'ok',
          template: database === 'ok' ? 'ok' : 'failing',
        }
        const status = database === 'ok' ? 'ok' : 'failing'
        return {
          status: status === 'ok' ? 200 : 503,
          body: JSON.stringify({ data: { status, version: '1.0.0', parts } }),
        }
      },
    }),
  ],
})
