import {
  Award,
  Bell,
  Coins,
  Flag,
  Flame,
  Gift,
  KeyRound,
  type LucideIcon,
  Mail,
  MessageSquare,
  Package,
  ShieldAlert,
  Smartphone,
  Sparkles,
  Target,
  Trophy,
  UserPlus,
  UsersRound,
  Zap,
} from 'lucide-react'
import type { Row } from '../api.ts'
import { count } from '../parts/states.tsx'

/** An event as lists answer it. */
export type Event = {
  readonly id: string
  readonly app_user_id: string
  readonly event_name: string
  readonly properties: Row
  readonly occurred_at: string
  readonly source: string
}

const text = (value: unknown): string => (value === null || value === undefined ? '' : String(value))
const signed = (value: unknown): string => `${Number(value) > 0 ? '+' : ''}${count(Number(value))}`
const words = (value: unknown): string => text(value).replace(/_/g, ' ')
const named = (row: Row): string => text(row['name'] ?? row['key'])

/** What the system made of an event, in a sentence, by the name of the system's event. */
const sentences: Readonly<Record<string, (row: Row) => string>> = {
  'svc.xp.awarded': (row) => `${signed(row['amount'])} XP, now ${count(row['total'] as number)}`,
  'svc.level.reached': (row) => `reached level ${text(row['level'])}`,
  'svc.streak.started': (row) => `${named(row)}: streak began, ${text(row['current_count'])} now`,
  'svc.streak.extended': (row) => `${named(row)}: streak of ${text(row['current_count'])}`,
  'svc.streak.restored': (row) => `${named(row)}: streak is back, ${text(row['current_count'])} now`,
  'svc.streak.broken': (row) => `${named(row)}: streak ended`,
  'svc.streak.frozen': (row) => `${named(row)}: a freeze saved the streak`,
  'svc.streak.at_risk': (row) => `${named(row)}: streak is at risk`,
  'svc.streak.milestone': (row) => `${named(row)}: milestone of ${text(row['count'] ?? row['current_count'])}`,
  'svc.achievement.unlocked': (row) => `unlocked ${named(row)}`,
  'svc.challenge.joined': (row) => `joined the challenge ${named(row)}`,
  'svc.challenge.completed': (row) => `completed the challenge ${named(row)}`,
  'svc.leaderboard.rank_changed': (row) =>
    `rank ${text(row['rank'])} on ${named(row)}${row['score'] === undefined ? '' : ` with ${count(row['score'] as number)}`}`,
  'svc.leaderboard.run_closed': (row) => `a run of ${named(row)} ended at rank ${text(row['rank'])}`,
  'svc.currency.credited': (row) =>
    `${signed(row['amount'])} ${text(row['currency_code'] ?? row['code'])}, now ${count((row['balance'] ?? row['balance_after']) as number)}`,
  'svc.currency.debited': (row) =>
    `${signed(-Math.abs(Number(row['amount'])))} ${text(row['currency_code'] ?? row['code'])}, now ${count((row['balance'] ?? row['balance_after']) as number)}`,
  'svc.inventory.granted': (row) => `got ${text(row['quantity'] ?? 1)} × ${itemOf(row)}`,
  'svc.inventory.consumed': (row) => `used ${text(row['quantity'] ?? 1)} × ${itemOf(row)}`,
  'svc.inventory.expired': (row) => `${itemOf(row)} ended`,
  'svc.store.purchased': (row) =>
    `bought ${text(row['offer_key'])} for ${count(row['total_price'] as number)} ${text(row['currency_code'])}`,
  'svc.store.refunded': (row) => `${text(row['offer_key'])} was refunded`,
  'svc.entitlement.granted': (row) => `got the entitlement ${text(row['entitlement_id'])}`,
  'svc.entitlement.revoked': (row) => `lost the entitlement ${text(row['entitlement_id'])}`,
  'svc.segment.entered': (row) => `entered the segment ${named(row)}`,
  'svc.segment.exited': (row) => `left the segment ${named(row)}`,
  'svc.group.joined': (row) => `joined a group as ${words(row['role'])}`,
  'svc.group.left': () => 'left a group',
  'svc.group.role_changed': (row) => `is ${words(row['role'])} of a group now`,
  'svc.role.assigned': (row) => `got the role ${text(row['role_key'])}`,
  'svc.role.revoked': (row) => `lost the role ${text(row['role_key'])}`,
  'svc.user.created': (row) => `account made, by ${words(row['method'])}`,
  'svc.user.banned': () => 'was banned',
  'svc.user.unbanned': () => 'ban was lifted',
  'svc.session.started': (row) => `opened the app${row['platform'] ? ` on ${text(row['platform'])}` : ''}`,
  'svc.session.ended': (row) =>
    `a session of ${text(Math.round(Number(row['duration_seconds'] ?? 0) / 60))} min. ended`,
  'svc.moderation.reported': (row) => `reported a ${words(row['subject_type'])} for ${words(row['reason'])}`,
  'svc.moderation.resolved': (row) => `content was ${words(row['status'])}`,
  'svc.onboarding.started': () => 'began the onboarding',
  'svc.onboarding.completed': () => 'finished the onboarding',
  'svc.push.opened': () => 'opened a push message',
  'svc.email.opened': () => 'opened an email',
  'svc.email.bounced': () => 'an email came back',
  'svc.email.unsubscribed': () => 'unsubscribed from emails',
  'svc.message.sent': () => 'sent a message',
  'svc.message.received': () => 'got a message',
  'svc.friend.requested': () => 'asked for a friendship',
  'svc.friend.accepted': () => 'became friends with somebody',
  'svc.referral.claimed': () => 'claimed a referral code',
  'svc.subscription.started': (row) => `subscribed to ${text(row['product_id'])}`,
}
const itemOf = (row: Row): string => text(row['name'] ?? row['catalog_item_key'] ?? row['item_key'] ?? row['key'])

/** Icons of the areas that system events come from, with their colour. */
const kinds: Readonly<Record<string, readonly [LucideIcon, string]>> = {
  xp: [Sparkles, 'violet'],
  level: [Sparkles, 'violet'],
  streak: [Flame, 'orange'],
  achievement: [Award, 'yellow'],
  challenge: [Target, 'teal'],
  leaderboard: [Trophy, 'yellow'],
  league: [Trophy, 'yellow'],
  currency: [Coins, 'yellow'],
  inventory: [Package, 'grape'],
  entitlement: [KeyRound, 'leaf'],
  subscription: [KeyRound, 'leaf'],
  segment: [UsersRound, 'blue'],
  group: [UsersRound, 'blue'],
  role: [KeyRound, 'blue'],
  user: [UserPlus, 'gray'],
  session: [Smartphone, 'gray'],
  moderation: [ShieldAlert, 'red'],
  push: [Bell, 'blue'],
  email: [Mail, 'blue'],
  message: [MessageSquare, 'blue'],
  referral: [Gift, 'grape'],
  onboarding: [Flag, 'teal'],
}

export const isSystem = ({ event_name }: Pick<Event, 'event_name'>): boolean => event_name.startsWith('svc.')

/** The icon of an event, and its colour as a name of the theme. */
export const iconOf = ({ event_name }: Pick<Event, 'event_name'>): readonly [LucideIcon, string] =>
  kinds[event_name.split('.')[1] ?? ''] ?? [Zap, 'gray']

/** What a system event says; undefined for what an app sent. */
export const sentenceOfEvent = ({
  event_name,
  properties,
}: Pick<Event, 'event_name' | 'properties'>): string | undefined => {
  if (!event_name.startsWith('svc.')) return undefined
  const known = sentences[event_name]
  return known ? known(properties) : words(event_name.replace(/^svc\./, '').replace(/\./g, ' '))
}

const isId = (value: unknown) => typeof value === 'string' && /^[0-9a-f]{8}-[0-9a-f]{4}-/.test(value)

/** The properties of an event as names and short values: inner ones by their path, without identifiers. */
export const pairsOf = (row: Row, before = ''): readonly (readonly [string, string])[] =>
  Object.entries(row).flatMap(([name, value]) => {
    if (value === null || value === undefined || isId(value)) return []
    if (Array.isArray(value)) {
      const isPlain = value.every((one) => typeof one !== 'object')
      return [[before + name, isPlain ? value.join(', ') : `${value.length} entries`] as const]
    }
    if (typeof value === 'object') return pairsOf(value as Row, `${before}${name}.`)
    if (typeof value === 'boolean') return [[before + name, value ? 'yes' : 'no'] as const]
    return [[before + name, String(value)] as const]
  })

/** The first properties of an event, for a line of a list. */
export const Pairs = ({ row, most = 3 }: { row: Row; most?: number }) => (
  <span>
    {pairsOf(row)
      .slice(0, most)
      .map(([name, value]) => (
        <span key={name} className="pair-of">
          {name} <b>{value.length > 40 ? `${value.slice(0, 40)}…` : value}</b>
        </span>
      ))}
  </span>
)
