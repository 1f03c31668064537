import { TrellisError } from './errors.ts'
import { getMe, updateMe } from './generated/client.ts'
import type { Operation } from './operation.ts'
import type { Store } from './platform.ts'
import type { Sessions } from './session.ts'
import type { Answer, CallOptions, Input } from './transport.ts'

type Send = <I, R>(operation: Operation<I, R>, input?: Input & CallOptions) => Promise<Answer<R>>

/** The zone of the device, as `Europe/Berlin`; undefined where the platform does not know it. */
export const deviceZone = (): string | undefined => {
  try {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
    return zone && zone !== 'Etc/Unknown' ? zone : undefined
  } catch {
    return undefined
  }
}

export type Zone = {
  /** Brings the zone of the device to the user's profile, where that was not done. Never throws. */
  keep(): Promise<void>
  /** As `keep`, at a time at which nobody waits, if the device has moved. */
  check(): void
  /** Of whom this device was. */
  forget(): Promise<void>
}

type Kept = { readonly userId: string; readonly zone: string }

/**
 * Days, streaks and quiet hours go by the zone of the user's profile. The server stores the first zone that it is told, and no later one; a device that
 * moves changes it, unless the user has chosen another zone than the device had.
 */
export const createZone = (
  send: Send,
  sessions: Pick<Sessions, 'current'>,
  store: Store,
  prefix: string,
  zoneOf: () => string | undefined,
): Zone => {
  const place = `${prefix}:zone`
  let kept: string | undefined
  let running: Promise<void> | undefined

  const read = async (): Promise<Kept | null> => {
    try {
      return JSON.parse((await store.getItem(place)) || 'null') as Kept | null
    } catch {
      return null
    }
  }

  const bring = async () => {
    const [zone, session] = [zoneOf(), await sessions.current()]
    if (!zone || !session) return
    const known = await read()
    const before = known?.userId === session.userId ? known.zone : undefined
    // a profile without a zone is in UTC
    if (before !== zone && (before !== undefined || zone !== 'UTC')) {
      const me = (await send(getMe)).body.data
      const isOfDevice = before !== undefined && (me.timezone ?? 'UTC') === before
      if (isOfDevice && me.timezone !== zone) await send(updateMe, { body: { timezone: zone } })
    }
    if (before !== zone) await store.setItem(place, JSON.stringify({ userId: session.userId, zone }))
    kept = `${session.userId} ${zone}`
  }

  const keep = () => {
    running ??= bring()
      .catch((error: unknown) => {
        // the next call tries again
        if (!(error instanceof TrellisError)) throw error
      })
      .finally(() => {
        running = undefined
      })
    return running
  }

  return {
    keep,
    check() {
      const zone = zoneOf()
      if (zone === undefined || running) return
      void sessions.current().then((session) => {
        if (session && kept !== `${session.userId} ${zone}`) void keep()
      })
    },
    async forget() {
      await running
      kept = undefined
      await store.removeItem(place)
    },
  }
}
