import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { fieldsOf } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import { Deleted, data, Flag, IncludeUser, Moment, Page, page, Time, Uuid, withUser } from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'

const Permission = z.string().regex(/^[a-z0-9_.:-]{1,64}$/, 'must match ^[a-z0-9_.:-]{1,64}$')
const Assignment = z.strictObject({
  role_key: z.string(),
  app_user_id: Uuid,
  group_id: Uuid.nullable(),
  granted_by: z.string().nullable(),
  expires_at: Time.nullable(),
  created_at: Time,
})
/** Named, because the rows of a list may have a user and are another schema. */
const AssignmentReply = data(Assignment).meta({ title: 'RoleAssignmentReply' })
const Mine = z.strictObject({
  roles: z.array(
    z.strictObject({ key: z.string(), name: z.string(), group_id: Uuid.nullable(), expires_at: Time.nullable() }),
  ),
  permissions: z.array(z.string()),
})

const roleForm: Form = {
  Basics: { name: true, key: true, description: true },
  Rights: {
    permissions: ['Permissions', 'Words that your app checks, such as `posts:delete`.'],
    is_default: ['For everybody', 'Every user has it, without being given it. Only one role can be it.'],
  },
}

export const roles = area({
  stem: 'roles',
  title: 'Roles',
  part: 'People',
  about: 'Roles with permissions, and who has them.',
  words: {
    group_id: ['Group', 'Where the role counts.', { unset: 'Everywhere' }],
    expires_at: ['Ends at', 'The moment at which the role ends.', { unset: 'Never' }],
  },
  routes: [
    ...group('/admin/projects/:projectId/roles', administrator, [
      ...definitions('role', {
        form: roleForm,
        fields: fieldsOf('role', { permissions: z.array(Permission).max(100, 'must have at most 100 items') }),
        refusals: { update: { 409: ['CONFLICT'] } },
        example: {
          create: { key: 'moderator', name: 'Moderator', permissions: ['posts:delete', 'users:mute'] },
          update: { permissions: ['posts:delete'] },
        },
        summaries: {
          create: 'Define a role; at most 50',
          list: 'Roles, newest first',
          get: 'A role',
          update: 'Change a role; at once for all who have it',
        },
      }),
      route('DELETE /:idOrKey', 'Delete a role; with `force` even if users have it', {
        call: 'role_delete',
        query: { force: Flag() },
        replies: { 200: Deleted },
      }),
      route('POST /:idOrKey/assignments', 'Assign a role to a user; at most 20 roles for a user', {
        call: 'role_assign',
        description:
          'With `group_id` in that group only. 200 when the user has the role already: `expires_at` changes if it is sent.',
        body: z.object({ app_user_id: Uuid, group_id: Uuid.nullish(), expires_at: Moment.nullish() }),
        example: { app_user_id: '00000000-0000-4000-8000-000000000000', expires_at: '2030-01-01T00:00:00Z' },
        args: ({ body }) => ({ patch: body, expires_at: undefined }),
        replies: { 201: AssignmentReply, 200: AssignmentReply },
      }),
      route('GET /:idOrKey/assignments', 'The users who have a role, newest assignment first', {
        call: 'role_assignments',
        query: { ...IncludeUser, ...Page },
        replies: { 200: page(withUser(Assignment)) },
      }),
      route('DELETE /:idOrKey/assignments/:userId', 'Revoke a role from a user, in one group or everywhere', {
        call: 'role_revoke',
        query: { group_id: Uuid.optional() },
        replies: { 200: Deleted },
      }),
    ]),
    ...group('/admin/projects/:projectId/users', administrator, [
      route('GET /:userId/roles', 'Roles that a user was given, newest first', {
        call: 'user_roles',
        description: 'Without the role that everybody has.',
        replies: { 200: data(z.array(Assignment.extend({ role_name: z.string() }))) },
      }),
    ]),
    ...group('/client/roles', endUser, [
      route('GET /', "The caller's roles and permissions", {
        call: 'roles_mine',
        operationId: 'getMyRoles',
        replies: { 200: data(Mine) },
      }),
      route('GET /check', 'Whether the caller has a permission, in the whole project or in a group', {
        call: 'role_check',
        operationId: 'checkRole',
        query: { permission: Permission, group_id: Uuid.optional() },
        replies: { 200: data(z.strictObject({ allowed: z.boolean() })) },
      }),
    ]),
  ],
})
