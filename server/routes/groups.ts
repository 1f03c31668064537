import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import { between, Deleted, data, Limit, Line, Offset, Page, page, SmallJson, Text, Uuid } from '#server/http/schemas.ts'

const Role = z.enum(['owner', 'admin', 'member', 'viewer'])

const Group = answer('group_json')

const NewGroup = z.object({
  name: Line(100, 1),
  description: Text(2000).nullable().optional(),
  avatar_url: Text(2000).nullable().optional(),
  is_public: z.boolean().optional(),
  max_members: between(1, 100_000).optional(),
  metadata: SmallJson(8192).optional(),
})

const MyGroup = Group.extend({ my_role: Role.nullable() })
const GroupChange = NewGroup.extend({
  description: Text(2000).nullable(),
  avatar_url: Text(2000).nullable(),
  is_public: z.boolean(),
  max_members: between(1, 100_000),
  metadata: SmallJson(8192),
}).partial()
const MemberChange = z.object({ role: Role, metadata: SmallJson(8192) }).partial()

const Invite = answer('group_invite_json', { url: z.string().nullable(), role: Role })

const Member = answer('group_member_json')

const someone = { user_id: '00000000-0000-4000-8000-000000000000' }
/** The codes of invalid input differ from those of the routes above them. */
const byMembers = { caller: endUser, codes: 'by part' } as const
const byAdministrators = { caller: administrator, codes: 'by part' } as const

export const groups = area({
  stem: 'groups',
  title: 'Groups',
  part: 'Social',
  about: 'Groups of users with roles and invitations.',
  codes: 'by area',
  invalid: 'INVALID_INPUT',
  words: {
    is_public: ['Public', 'Anybody finds it and joins; else by invitation.'],
    max_members: ['Most members', 'How many it takes.'],
    role: ['Role', 'Owner, admin, member, or viewer who only reads.'],
    max_uses: ['Uses', 'How many users can join by it.'],
    expires_in_hours: ['Valid for', 'Hours.'],
    code: ['Code', 'Of an invitation.'],
  },
  routes: [
    ...group('/client/groups', endUser, [
      route('POST /', 'Create a group; the caller becomes its owner', {
        call: 'group_create',
        description: 'At most 10 a day, and 50 groups for one user.',
        body: NewGroup,
        example: { name: 'Early birds' },
        replies: { 201: data(Group) },
      }),
      route('GET /mine', "The caller's groups with the caller's role in each, newest membership first", {
        call: 'groups_mine',
        operationId: 'listMyGroups',
        replies: { 200: data(z.array(z.strictObject({ role: Role, groups: Group }))) },
      }),
      route('GET /search', 'Public groups by a part of their name, newest first', {
        call: 'groups_search',
        query: { q: Text(200).optional(), limit: Limit(200, 20), offset: Offset },
        replies: { 200: page(Group) },
      }),
      route('GET /:groupId', "A public group, or one of the caller's", {
        call: 'group_get',
        replies: { 200: data(MyGroup) },
      }),
      route('POST /:groupId/join', 'Join a public group', {
        call: 'group_join',
        description: '201 for a new member, 200 when the caller is a member already.',
        replies: { 200: data(Member), 201: data(Member) },
        failure: 'JOIN_FAILED',
      }),
      route('POST /:groupId/leave', 'Leave a group; its owner cannot', {
        call: 'group_leave',
        replies: { 200: data(z.strictObject({ left: z.literal(true) })) },
        failure: 'LEAVE_FAILED',
      }),
      route(
        'GET /:groupId/members',
        'Members of a group, longest membership first; of a private group for its members only',
        {
          call: 'group_members',
          query: { limit: Limit(1000, 100), offset: Offset },
          replies: { 200: page(Member) },
        },
      ),
    ]),
    ...group('/client/groups', byMembers, [
      route('PATCH /:groupId', 'Change a group, as its owner or an admin', {
        call: 'group_update',
        description:
          'A group that owns rows of collections stays private; `max_members` is never below the number of members.',
        body: GroupChange,
        patch: true,
        example: { name: 'Early birds', max_members: 50 },
        replies: { 200: data(MyGroup) },
      }),
      route('DELETE /:groupId', 'Delete a group with the rows that it owns, as its owner', {
        call: 'group_delete',
        replies: { 200: Deleted },
      }),
      route(
        'PATCH /:groupId/members/:userId',
        'Change the role or the metadata of a member of a lower rank, as owner or admin',
        {
          call: 'group_member_update',
          description: "The new role must be below the caller's. Owners and admins can also change their own metadata.",
          body: MemberChange,
          patch: true,
          example: { role: 'viewer' },
          replies: { 200: data(Member) },
        },
      ),
      route('DELETE /:groupId/members/:userId', 'Remove a member of a lower rank, as owner or admin', {
        call: 'group_member_kick',
        operationId: 'removeGroupMember',
        replies: { 200: Deleted },
      }),
      route('POST /:groupId/transfer', 'Make another member the owner; the former owner becomes an admin', {
        call: 'group_transfer',
        body: z.object({ user_id: Uuid }),
        example: someone,
        replies: { 200: data(MyGroup) },
      }),
      route('POST /:groupId/invites', 'Create an invite code to a group, as owner or admin', {
        call: 'group_invite_create',
        description:
          'It lets in `max_uses` users with `role`, which is below the own one, for `expires_in_hours`. It ends when its maker leaves the group or loses ' +
          'the rank. A group has at most 100 open invites.',
        body: z.object({
          max_uses: between(1, 10_000).default(1),
          expires_in_hours: between(1, 8760).default(168),
          role: Role.default('member'),
        }),
        example: { max_uses: 5 },
        replies: { 201: data(Invite) },
      }),
      route('GET /:groupId/invites', 'The open invites of a group, newest first, as owner or admin', {
        call: 'group_invites_list',
        query: Page,
        replies: { 200: page(Invite) },
      }),
      route('DELETE /:groupId/invites/:inviteId', 'Delete an invite, as owner or admin', {
        call: 'group_invite_delete',
        replies: { 200: Deleted },
      }),
      route('POST /join', 'Join a group, public or private, by the code of an invite', {
        call: 'group_join_by_code',
        operationId: 'joinGroupByCode',
        description: '201 for a new member, 200 when the caller is a member already, which does not count as a use.',
        body: z.object({ code: Text(64, 1) }),
        example: { code: 'K7QW-2M9F-XB4C' },
        replies: { 200: data(Member), 201: data(Member) },
        failure: 'JOIN_FAILED',
      }),
    ]),
    ...group('/admin/projects/:projectId/groups', byAdministrators, [
      route('GET /', 'All groups, or those whose name contains a text; newest first', {
        call: 'groups_list',
        query: { search: Text(200).optional(), ...Page },
        replies: { 200: page(Group) },
      }),
      route('GET /:groupId', 'A group', { call: 'group_show', replies: { 200: data(Group) } }),
      route('PATCH /:groupId', 'Change a group', {
        call: 'group_update_any',
        body: GroupChange,
        patch: true,
        example: { max_members: 500 },
        replies: { 200: data(Group) },
      }),
      route('DELETE /:groupId', 'Delete a group with the rows that it owns', {
        call: 'group_delete_any',
        replies: { 200: Deleted },
      }),
      route('GET /:groupId/members', 'Members of a group, longest membership first', {
        call: 'group_members_any',
        query: Page,
        replies: { 200: page(Member) },
      }),
      route('POST /:groupId/members', 'Add a user to a group, public or private', {
        call: 'group_member_add',
        operationId: 'addGroupMember',
        body: z.object({
          app_user_id: Uuid,
          role: z.enum(['admin', 'member', 'viewer'], 'must be admin, member or viewer').optional(),
        }),
        example: { app_user_id: '00000000-0000-4000-8000-000000000000' },
        replies: { 200: data(Member), 201: data(Member) },
      }),
      route('PATCH /:groupId/members/:userId', 'Change the role or the metadata of a member', {
        call: 'group_member_update_any',
        description:
          "With role `owner` the former owner becomes an admin; the owner's role cannot be changed in another way.",
        body: MemberChange,
        patch: true,
        example: { role: 'admin' },
        replies: { 200: data(Member) },
      }),
      route(
        'DELETE /:groupId/members/:userId',
        'Remove a member; after the removal of the owner the oldest admin becomes the owner, else the oldest member',
        {
          call: 'group_member_remove',
          operationId: 'adminRemoveGroupMember',
          replies: { 200: Deleted },
        },
      ),
    ]),
  ],
})
