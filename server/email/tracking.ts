/** Openings and clicks of messages. */
import { dataOf } from '#server/database/database.ts'
import { workerOf } from '#server/email/worker.ts'
import { refusal } from '#server/errors.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { isOver, readTracked, type Tracked } from '#server/providers/mail_tracking.ts'

/** A transparent GIF of one pixel. */
const pixel = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')
// each opening is a request: neither a browser nor a proxy may answer it from memory
const fresh = { 'cache-control': 'no-store, private', 'referrer-policy': 'no-referrer' }

/**
 * Records the opening or the click, and answers whether the link still leads anywhere: the origin that it redirects from is everybody's, so it ends with
 * its project, with its message, and after 90 days. A database that is away for a moment keeps nobody from a link whose time is not over.
 */
const isLive = async ({ services, request, route: at }: HandlerContext, tracked: Tracked): Promise<boolean> => {
  const { project, message, url } = tracked
  if (isOver(tracked, services.now())) return false
  try {
    if ((await services.projectCache.byProject(project))?.hold === 'paused') return false
    const call = await workerOf(services, project, at)
    return call !== null && dataOf<boolean>(await call('email_track', { message_id: message, url }))
  } catch (error) {
    const { code } = error as { code?: string }
    request.log.warn({ request: request.id, project, code }, 'an opening or a click was not recorded')
    return true
  }
}

export const open = async (context: HandlerContext) => {
  const { params, services } = context
  const tracked = readTracked(services.secrets, String(params['token']))
  if (!tracked || !(await isLive(context, tracked))) throw refusal(404, 'NOT_FOUND', 'This link is not valid.')
  return tracked.url === null
    ? { status: 200, body: pixel, headers: { ...fresh, 'content-type': 'image/gif' } }
    : {
        status: 302,
        body: '',
        headers: { ...fresh, 'content-type': 'text/html; charset=utf-8', location: tracked.url },
      }
}
