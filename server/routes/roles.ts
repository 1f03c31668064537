import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { area, route } from '#server/http/route.ts'
import { Deleted, data, Flag, Key, Line, Moment, Page, page, Text, Time, Uuid } from '#server/http/schemas.ts'

const Permission = z.string().regex(/^[a-z0-9_.:-]{1,64}$/, 'must match ^[a-z0-9_.:-]{1,64}$')
const Assignment = z.strictObject({
  role_key: z.string(),
  app_user_id: Uuid,
  group_id: Uuid.nullable(),
  granted_by: z.string().nullable(),
  expires_at: Time.nullable(),
  created_at: Time,
})
const Mine = z.strictObject({
  roles: z.array(
    z.strictObject({ key: z.string(), name: z.string(), group_id: Uuid.nullable(), expires_at: Time.nullable() }),
  ),
  permissions: z.array(z.string()),
})

const role = '/admin/projects/:projectId/roles/:idOrKey' as const

export const roles = area({
  stem: 'roles',
  title: 'Roles',
  part: 'People',
  about: 'Roles with permissions, and who has them.',
  source: 'supplement',
  routes: [
    ...definitions('role', {
      path: '/roles',
      fixed: { key: Key },
      fields: {
        name: Line(200, 1),
        description: Text(2000).nullable(),
        permissions: z.array(Permission).max(100, 'must have at most 100 items'),
        is_default: z.boolean(),
      },
      required: ['key', 'name'],
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
    route(`DELETE ${role}`, {
      caller: administrator,
      summary: 'Delete a role; with `force` even if users have it',
      query: { force: Flag() },
      call: 'role_delete',
      replies: { 200: Deleted },
    }),
    route(`POST ${role}/assignments`, {
      caller: administrator,
      summary: 'Assign a role to a user; at most 20 roles for a user',
      description:
        'With `group_id` in that group only. 200 when the user has the role already: `expires_at` changes if it is sent.',
      body: z.object({ app_user_id: Uuid, group_id: Uuid.nullish(), expires_at: Moment.nullish() }),
      example: { app_user_id: '00000000-0000-4000-8000-000000000000', expires_at: '2030-01-01T00:00:00Z' },
      args: ({ body }) => ({ patch: body, expires_at: undefined }),
      call: 'role_assign',
      replies: { 201: data(Assignment), 200: data(Assignment) },
    }),
    route(`GET ${role}/assignments`, {
      caller: administrator,
      summary: 'The users who have a role, newest assignment first',
      query: Page,
      call: 'role_assignments',
      replies: { 200: page(Assignment) },
    }),
    route(`DELETE ${role}/assignments/:userId`, {
      caller: administrator,
      summary: 'Revoke a role from a user, in one group or everywhere',
      query: { group_id: Uuid.optional() },
      call: 'role_revoke',
      replies: { 200: Deleted },
    }),
    route('GET /client/roles', {
      operationId: 'getMyRoles',
      caller: endUser,
      summary: "The caller's roles and permissions",
      call: 'roles_mine',
      replies: { 200: data(Mine) },
    }),
    route('GET /client/roles/check', {
      operationId: 'checkRole',
      caller: endUser,
      summary: 'Whether the caller has a permission, in the whole project or in a group',
      query: { permission: Permission, group_id: Uuid.optional() },
      call: 'role_check',
      replies: { 200: data(z.strictObject({ allowed: z.boolean() })) },
    }),
  ],
})
