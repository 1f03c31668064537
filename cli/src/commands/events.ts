import { listEvents } from '../../../sdk/src/generated/admin.ts'
import type { Event, EventCursorPage } from '../../../sdk/src/generated/schemas.ts'
import { isTemporary } from '../../../sdk/src/index.ts'
import { plain } from '../../../server/plain.ts'
import { apiFor } from '../api.ts'
import type { Command, Context } from '../command.ts'
import { exits, usageError } from '../exit.ts'
import { projectFor } from '../settings.ts'
import { json } from '../terminal.ts'

const pageSize = 100
/** What a look reads at most: more events than that at a time are not for eyes. */
const mostPages = 20
const mostKnown = 20_000

const numberOf = (context: Context, name: string, otherwise: number, least: number, most: number): number => {
  const text = context.option(name)
  if (text === undefined) return otherwise
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < least || value > most) {
    throw usageError(`--${name} must be a whole number from ${least} to ${most}.`)
  }
  return value
}

export const eventsTail: Command = {
  name: 'events tail',
  summary: 'Show events as they come',
  about: 'It asks for the newest events again and again; --json prints one event a line.',
  flags: {
    event: { value: 'NAME', about: 'Events of this name alone' },
    user: { value: 'ID', about: 'Events of this user alone' },
    system: { about: 'System events (svc.*) too' },
    lines: { value: 'N', short: 'n', about: 'How many earlier events to begin with, 10 by default' },
    interval: { value: 'SECONDS', about: 'How often to look, 2 by default' },
    count: { value: 'N', about: 'End after so many events' },
  },
  async run(context) {
    const { terminal } = context
    const lines = numberOf(context, 'lines', 10, 0, pageSize)
    const interval = numberOf(context, 'interval', 2, 1, 3600)
    const count = numberOf(context, 'count', Number.POSITIVE_INFINITY, 1, 1_000_000)
    const projectId = await projectFor(context)
    const { call } = await apiFor(context)
    const [event_name, user_id] = [context.option('event'), context.option('user')]
    const filters = {
      ...(event_name ? { event_name } : {}),
      ...(user_id ? { user_id } : {}),
      ...(context.has('system') ? { include_system: true } : {}),
    }
    const known = new Set<string>()
    let left = count

    /** New events, oldest first: the newest pages, back to one of which all is known. */
    const look = async (isFirst: boolean): Promise<Event[]> => {
      const found: Event[] = []
      let cursor: string | null = null
      for (let page = 0; page < mostPages; page += 1) {
        const query: { limit: number; cursor?: string } = { ...filters, limit: pageSize, ...(cursor ? { cursor } : {}) }
        const { data, pagination }: EventCursorPage = await call(listEvents, { path: { projectId }, query })
        const fresh = data.filter(({ id }) => !known.has(id))
        for (const { id } of fresh) known.add(id)
        found.push(...fresh)
        cursor = pagination.next_cursor
        if (isFirst || !cursor || fresh.length < data.length) break
        if (page === mostPages - 1) terminal.say('More events have come than are shown.')
      }
      // the oldest are forgotten: a look does not reach back to them
      for (const id of known) {
        if (known.size <= mostKnown) break
        known.delete(id)
      }
      return found.reverse()
    }

    const show = (event: Event) => {
      const { occurred_at, event_name: name, app_user_id, properties } = event
      if (terminal.isJson) return terminal.print(json(event))
      const { dim, bold } = terminal.paint
      terminal.print(
        `${dim(plain(occurred_at))}  ${bold(plain(name))}  ${dim(plain(app_user_id))}  ${json(properties)}`,
      )
    }

    for (let isFirst = true, failures = 0; ; isFirst = false) {
      let events: Event[] = []
      try {
        events = await look(isFirst)
        failures = 0
      } catch (error) {
        // a server that is being restarted comes back
        if (isFirst || !isTemporary(error)) throw error
        failures += 1
        if (failures === 1) terminal.say('The server does not answer; still trying.')
      }
      for (const event of isFirst ? (lines > 0 ? events.slice(-lines) : []) : events) {
        show(event)
        left -= 1
        if (left === 0) return exits.done
      }
      await terminal.during('Waiting for events', () => {
        const seconds = Math.min(60, interval * 2 ** Math.min(failures, 6))
        return new Promise((resolve) => setTimeout(resolve, Math.max(interval, seconds) * 1000))
      })
    }
  },
}
