import type { ComponentType } from 'preact'
import type { PageProps } from './page_props.ts'
import { AuditVerify } from './pages/audit_verify.tsx'
import { CollectionBuilder } from './pages/collection_builder.tsx'
import { CollectionGrid } from './pages/collection_grid.tsx'
import { EventsLive } from './pages/events_live.tsx'
import { FlagEvaluate } from './pages/flag_evaluate.tsx'
import { Keys } from './pages/keys.tsx'
import { LeaderboardLive } from './pages/leaderboard_live.tsx'
import { MediaLibrary } from './pages/media_library.tsx'
import { ModerationQueue } from './pages/moderation_queue.tsx'
import { Operations } from './pages/operations.tsx'
import { PushComposer } from './pages/push_composer.tsx'
import { SegmentBuilder } from './pages/segment_builder.tsx'
import { StreakSimulator, XpSimulator } from './pages/simulators.tsx'
import { Team } from './pages/team.tsx'
import { UserBrowser } from './pages/user_browser.tsx'
import { UserTimeline } from './pages/user_timeline.tsx'
import { WebhookDeliveries } from './pages/webhook_deliveries.tsx'
import { texts } from './texts.ts'

/** A page made by hand, where a person looks rather than fills in. */
export type Page = {
  readonly path: string
  readonly title: string
  /** It is about one row of this kind, and linked from it. */
  readonly rowOf?: string
  /** It is linked from the list of this kind. */
  readonly listOf?: string
  readonly Show: ComponentType<PageProps>
}

export const pages: readonly Page[] = [
  { path: 'live/events', title: texts.eventsLive, listOf: 'events', Show: EventsLive },
  { path: 'live/operations', title: texts.operations, listOf: 'operations', Show: Operations },
  { path: 'live/moderation', title: texts.moderationQueue, listOf: 'moderation/queue', Show: ModerationQueue },
  { path: 'build/collection', title: texts.collectionBuilder, listOf: 'collections', Show: CollectionBuilder },
  { path: 'build/segment', title: texts.segmentBuilder, listOf: 'segments', Show: SegmentBuilder },
  { path: 'simulate/streak', title: texts.streakSimulator, listOf: 'streaks', Show: StreakSimulator },
  { path: 'simulate/xp', title: texts.xpSimulator, listOf: 'xp/rules', Show: XpSimulator },
  { path: 'verify/audit', title: texts.auditVerify, listOf: 'audit-events', Show: AuditVerify },
  { path: 'browse/users', title: texts.userBrowser, listOf: 'users', Show: UserBrowser },
  { path: 'browse/media', title: texts.mediaLibrary, listOf: 'media', Show: MediaLibrary },
  { path: 'compose/push', title: texts.pushComposer, listOf: 'push/campaigns', Show: PushComposer },
  { path: 'keys', title: texts.keys, Show: Keys },
  { path: 'team', title: texts.team, Show: Team },
  { path: 'collection/rows', title: texts.grid, rowOf: 'collections', Show: CollectionGrid },
  { path: 'user/timeline', title: texts.timeline, rowOf: 'users', Show: UserTimeline },
  { path: 'leaderboard/live', title: texts.leaderboardLive, rowOf: 'leaderboards', Show: LeaderboardLive },
  { path: 'webhook/deliveries', title: texts.deliveries, rowOf: 'webhooks', Show: WebhookDeliveries },
  { path: 'flag/who', title: texts.flagEvaluate, rowOf: 'flags', Show: FlagEvaluate },
]
