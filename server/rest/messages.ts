/** What clients of realtime-js send, and what they are told, beside the form of the protocol. */
import { z } from 'zod'
import { ApiError, refusal } from '#server/errors.ts'
import type { Frame } from '#server/realtime/protocol.ts'
import { invalid } from '#server/rest/auth_shapes.ts'
import { Binding } from '#server/rest/changes.ts'

export const roomName = /^[A-Za-z0-9_.:-]{1,64}$/

/** Messages of rooms are passed on, and not kept. */
const NotKept = z
  .unknown()
  .refine((value) => !value, 'is not offered: messages are not kept, rows of a collection are')
  .optional()

export const Join = z.object({
  access_token: z.string().max(4096).nullish(),
  config: z
    .object({
      broadcast: z.object({ ack: z.boolean().nullish(), self: z.boolean().nullish(), replay: NotKept }).nullish(),
      presence: z.object({ enabled: z.boolean().nullish() }).nullish(),
      private: z.boolean().nullish(),
      postgres_changes: z.array(Binding).max(100, 'must have at most 100 entries').nullish(),
    })
    .nullish(),
})

export const Broadcast = z.object({
  event: z.string().regex(/^[A-Za-z0-9_.:-]{1,64}$/, 'must have 1 to 64 letters, digits and _.:-'),
  payload: z.unknown().optional(),
  persist: NotKept,
})
export const Presence = z.object({ event: z.enum(['track', 'untrack']), payload: z.unknown().optional() })
export const Token = z.object({ access_token: z.string().min(1).max(4096) })

type Event = { readonly event: string; readonly payload: never; readonly at: string }
type Here = { readonly user_id: string; readonly state: unknown }
export type Told = Event & {
  readonly type: string
  readonly ref?: string
  readonly channel?: string
  readonly code?: string
  readonly message?: string
  readonly state?: readonly Here[]
  readonly joins: readonly Here[]
  readonly leaves: readonly Here[]
}

const told = new WeakMap<Frame, Told>()
/** Read once for all who get the frame. */
export const read = (frame: Frame): Told => {
  const known = told.get(frame)
  if (known) return known
  const made = JSON.parse(frame.text) as Told
  told.set(frame, made)
  return made
}

/** By user, who is there once: the newest state takes the place of the one before. */
export const metasOf = (users: readonly Here[]) =>
  Object.fromEntries(
    users.map(({ user_id, state }) => {
      const isObject = typeof state === 'object' && state !== null && !Array.isArray(state)
      return [user_id, { metas: [{ ...(isObject ? state : { state }), phx_ref: user_id }] }]
    }),
  )

export const refusedBy = ({ type, code, message }: Told): void => {
  if (type === 'error') throw refusal(400, code ?? '', message ?? '')
}

export const checked = <T extends z.ZodType>(shape: T, value: unknown): z.output<T> => {
  const parsed = shape.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw invalid(issue?.path.join('.') || 'payload', issue?.message ?? 'is not valid')
}

/** realtime-js shows the texts of a refusal, joined: the code is the first. */
export const reasonOf = (error: unknown) =>
  error instanceof ApiError && error.status < 500
    ? { code: error.code, reason: error.message }
    : { code: error instanceof ApiError ? error.code : 'INTERNAL_ERROR', reason: 'This did not work: try again.' }
