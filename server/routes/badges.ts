import { z } from 'zod'
import { administrator } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { area, group, route } from '#server/http/route.ts'
import { data } from '#server/http/schemas.ts'

export const badges = area({
  stem: 'badges',
  title: 'Badges',
  part: 'Engagement',
  about: 'Signs of what users did.',
  source: 'supplement',
  routes: group('/admin/projects/:projectId/badges', administrator, [
    ...definitions('badge', {
      example: { create: { key: 'first-week', name: 'First week' }, update: { is_active: false } },
    }),
    route('POST /retire', 'Retire all badges', {
      call: 'badges_retire',
      replies: { 200: data(z.strictObject({ retired: z.int() })) },
    }),
  ]),
})
