import { afterEach, expect } from 'vitest'
import { type Client, type Project, startHarness, type User } from '#test/support/harness.ts'

/** A harness and a project, and users of it. */
export const startMessaging = async () => {
  const harness = await startHarness()
  const project = await harness.project()
  afterEach(() => harness.setTime(null))
  const users = (many: number) => Promise.all(Array.from({ length: many }, () => project.user())) as Promise<any>
  const three = (): Promise<[User, User, User]> => users(3)
  return { harness, project, users, three }
}

export const conversations = '/client/messaging/conversations'
export const nobody = '00000000-0000-4000-8000-000000000000'

/** A direct conversation of two, or a group conversation of more, which the first creates. */
export const conversationOf = async (creator: Client, others: readonly User[], type = 'direct'): Promise<string> => {
  const answer = await creator.post(conversations, { type, participant_ids: others.map(({ id }) => id) })
  expect([200, 201], answer.text).toContain(answer.status)
  return answer.data.id
}

export const send = async (sender: Client, conversation: string, body: string, more: object = {}) => {
  const answer = await sender.post(`${conversations}/${conversation}/messages`, { body, ...more })
  expect(answer.status, answer.text).toBe(201)
  return answer.data as { id: string; created_at: string }
}

export const listed = async (reader: Client, conversation: string, query = '') => {
  const answer = await reader.get(`${conversations}/${conversation}/messages${query}`)
  expect(answer.status, answer.text).toBe(200)
  return answer.body as { data: any[]; total: number; offset: number; limit: number }
}

export const bodies = async (reader: Client, conversation: string, query = ''): Promise<string[]> =>
  (await listed(reader, conversation, query)).data.map(({ body }) => body)

export const unread = async (reader: Client) => (await reader.get('/client/messaging/unread')).data

/** `[unread, mentions]` of one conversation. */
export const counts = async (reader: Client, conversation: string): Promise<[number, number]> => {
  const { data } = await reader.get(`${conversations}/${conversation}`)
  return [data.unread, data.mentions]
}

export const block = (project: Project, blocker: User, blocked: User) =>
  project.sql('insert into app.blocks (blocker, blocked) values ($1, $2)', [blocker.id, blocked.id])

export const unblock = (project: Project) => project.sql('delete from app.blocks')

/** Counters that differ from what they count, and times that are not unique or not after what was read: none, whatever has happened. */
export const wrongCounters = (project: Project) =>
  project.sql(
    `with expected as (
       select p.conversation_id, p.app_user_id, p.unread_count, p.mention_count, p.last_activity_at, c.last_activity_at as newest,
              (select count(*) from app.messages m
                where m.conversation_id = p.conversation_id and m.sender_id is distinct from p.app_user_id
                  and m.created_at > coalesce(p.last_read_at, p.joined_at)) as unread,
              (select count(*) from app.messages m
                where m.conversation_id = p.conversation_id and m.sender_id is distinct from p.app_user_id
                  and m.created_at > coalesce(p.last_read_at, p.joined_at) and p.app_user_id = any (m.mentions)) as mentions
         from app.conversation_participants p join app.conversations c on c.id = p.conversation_id)
     select 'participant' as what, e.* from expected e
      where (e.unread_count, e.mention_count) <> (e.unread, e.mentions) or e.last_activity_at <> e.newest
     union all
     select 'conversation', c.id, null, c.message_count, c.top_level_count, null, null, n.messages, n.top
       from app.conversations c
       left join lateral (select count(*) as messages, count(*) filter (where m.parent_message_id is null) as top
                            from app.messages m where m.conversation_id = c.id) n on true
      where (c.message_count, c.top_level_count) <> (n.messages, n.top)
     union all
     select 'message', m.id, null, m.reply_count, null, null, null, r.count, null
       from app.messages m
       left join lateral (select count(*) from app.messages x where x.parent_message_id = m.id) r on true
      where m.reply_count <> r.count
     union all
     select 'alone', c.id, null, null, null, null, null, null, null
       from app.conversations c
      where not exists (select from app.conversation_participants p where p.conversation_id = c.id)
         or c.type = 'group' and (select count(*) from app.conversation_participants p where p.conversation_id = c.id and p.is_owner) <> 1`,
  )
