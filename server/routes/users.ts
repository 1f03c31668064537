import { endUser } from '#server/http/callers.ts'
import { area, route } from '#server/http/route.ts'
import { data } from '#server/http/schemas.ts'
import { User } from '#server/routes/client_auth.ts'

/** The headers' wishes, the brand's first; nothing when neither was sent, so that most reads write nothing. */
const zones = (headers: Record<string, string | string[] | undefined>) => {
  const wished = [headers['x-service-timezone'], headers['time-zone']].flat().filter((zone) => typeof zone === 'string')
  return wished.length > 0 ? wished : undefined
}

export const users = area({
  stem: 'users',
  title: 'Users',
  source: 'contract',
  invalid: 'INVALID_INPUT',
  routes: [
    route('GET /client/users/me', {
      caller: endUser,
      summary: "The caller's profile",
      description:
        'A valid IANA zone in X-Service-Timezone, or else in Time-Zone, is stored when the profile has none.',
      handle: ({ call, request }) => {
        const wished = zones(request.headers)
        return call('me_get', { time_zones: wished }, { readOnly: wished === undefined })
      },
      replies: { 200: data(User) },
      refusals: { 404: ['NOT_FOUND'] },
      failure: 'FETCH_FAILED',
    }),
  ],
})
