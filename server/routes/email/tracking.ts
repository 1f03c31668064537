import { open } from '#server/email/tracking.ts'
import { anyone } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { htmlPage, picture } from '#server/http/stream.ts'

export const emailTracking = area({
  stem: 'email',
  title: 'Email',
  unversioned: true,
  routes: [
    ...group('/e', anyone, [
      route('GET /:token', 'A picture or a link of a message with `track`: notes the opening or the click', {
        handle: open,
        operationId: 'trackEmail',
        description:
          'The server makes these addresses when it sends. A link redirects to the address that stood in the message, which the token holds encrypted; no other can be asked for. It ends with its message, after 90 days, and with its project.',
        replies: { 200: picture('image/gif'), 302: htmlPage() },
        refusals: { 404: ['NOT_FOUND'] },
        ceiling: 'none',
        failure: null,
      }),
    ]),
  ],
})
