/** The profile of the caller. */
import type { HandlerContext } from '#server/http/route.ts'

/** The time zones of the headers, the brand's first; none when neither was sent, so that most reads write nothing. */
const zones = (headers: Record<string, string | string[] | undefined>) => {
  const requested = [headers['x-service-timezone'], headers['time-zone']]
    .flat()
    .filter((zone) => typeof zone === 'string')
  return requested.length > 0 ? requested : undefined
}

/** A read that brings a time zone stores it. */
export const getMe = ({ call, request }: HandlerContext) => {
  const requested = zones(request.headers)
  return call('me_get', { time_zones: requested }, { readOnly: requested === undefined })
}
