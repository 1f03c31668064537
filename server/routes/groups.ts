import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { area, route } from '#server/http/route.ts'
import { between, data, JsonObject, Limit, Offset, page, SmallJson, Text, Time, Uuid } from '#server/http/schemas.ts'

const Role = z.enum(['owner', 'admin', 'member', 'viewer'])

const Group = z.strictObject({
  id: Uuid,
  name: z.string(),
  description: z.string().nullable(),
  avatar_url: z.string().nullable(),
  is_public: z.boolean(),
  max_members: z.int(),
  metadata: JsonObject,
  member_count: z.int(),
  created_at: Time,
  updated_at: Time,
})

const NewGroup = z.object({
  name: Text(100, 1),
  description: Text(2000).nullable().optional(),
  avatar_url: Text(2000).nullable().optional(),
  is_public: z.boolean().optional(),
  max_members: between(1, 100_000).optional(),
  metadata: SmallJson(8192).optional(),
})

const Member = z.strictObject({
  group_id: Uuid,
  app_user_id: Uuid,
  role: Role,
  metadata: JsonObject,
  joined_at: Time,
  app_users: z.strictObject({ id: Uuid, display_name: z.string(), avatar_url: z.string().nullable() }),
})

const groupId = { groupId: Uuid }
const notFound = { 404: ['NOT_FOUND'] }

export const groups = area({
  stem: 'groups',
  title: 'Groups',
  source: 'contract',
  invalid: 'INVALID_INPUT',
  routes: [
    route('POST /client/groups', {
      caller: endUser,
      summary: 'Make a group; the caller becomes its owner',
      description: 'At most 10 a day, and 50 groups for one user.',
      body: NewGroup,
      example: { name: 'Early birds' },
      call: 'group_create',
      replies: { 201: data(Group) },
      refusals: { 400: ['CONTENT_REJECTED'], 403: ['USER_MUTED'], 409: ['GROUP_LIMIT_REACHED'] },
      failure: 'CREATE_FAILED',
    }),
    route('GET /client/groups/mine', {
      caller: endUser,
      summary: "The caller's groups with the caller's role in each, newest membership first",
      call: 'groups_mine',
      replies: { 200: data(z.array(z.strictObject({ role: Role, groups: Group }))) },
      failure: 'LIST_FAILED',
    }),
    route('GET /client/groups/search', {
      caller: endUser,
      summary: 'Public groups by a part of their name, newest first',
      query: { q: Text(200).optional(), limit: Limit(200, 20), offset: Offset },
      call: 'groups_search',
      replies: { 200: page(Group) },
      failure: 'LIST_FAILED',
    }),
    route('GET /client/groups/:groupId', {
      caller: endUser,
      summary: "A public group, or one of the caller's",
      params: groupId,
      call: 'group_get',
      replies: { 200: data(Group.extend({ my_role: Role.nullable() })) },
      refusals: notFound,
      failure: 'FETCH_FAILED',
    }),
    route('POST /client/groups/:groupId/join', {
      caller: endUser,
      summary: 'Join a public group',
      description: '201 when the caller came in, 200 when the caller was in it already.',
      params: groupId,
      call: 'group_join',
      replies: { 200: data(Member), 201: data(Member) },
      refusals: { ...notFound, 409: ['GROUP_FULL', 'GROUP_LIMIT_REACHED'] },
      failure: 'JOIN_FAILED',
    }),
    route('POST /client/groups/:groupId/leave', {
      caller: endUser,
      summary: 'Leave a group; its owner cannot',
      params: groupId,
      call: 'group_leave',
      replies: { 200: data(z.strictObject({ left: z.literal(true) })) },
      refusals: { 400: ['OWNER_CANNOT_LEAVE'], ...notFound },
      failure: 'LEAVE_FAILED',
    }),
    route('GET /client/groups/:groupId/members', {
      caller: endUser,
      summary: 'Who is in a group, longest first; of a private group for its members only',
      params: groupId,
      query: { limit: Limit(1000, 100), offset: Offset },
      call: 'group_members',
      replies: { 200: page(Member) },
      refusals: notFound,
      failure: 'LIST_FAILED',
    }),
    route('POST /admin/projects/:projectId/groups/:groupId/members', {
      caller: administrator,
      source: 'supplement',
      summary: 'Put a user into a group, a private one too',
      params: groupId,
      body: z.object({
        app_user_id: Uuid,
        role: z.enum(['admin', 'member', 'viewer'], 'must be admin, member or viewer').optional(),
      }),
      example: { app_user_id: '00000000-0000-4000-8000-000000000000' },
      call: 'group_member_add',
      replies: { 200: data(Member), 201: data(Member) },
      refusals: {
        400: ['INVALID_ID', 'VALIDATION_ERROR', 'INVALID_BODY'],
        404: ['NOT_FOUND', 'USER_NOT_FOUND'],
        409: ['GROUP_FULL', 'GROUP_LIMIT_REACHED'],
      },
      failure: 'CREATE_FAILED',
    }),
  ],
})
