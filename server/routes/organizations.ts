import { z } from 'zod'
import { accept, create, invite } from '#server/accounts/organizations.ts'
import { developer, organizationMember, projectOwner } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { organizationRoles } from '#server/http/ranks.ts'
import { area, group, route } from '#server/http/route.ts'
import { Deleted, data, Email, Line, Page, page, Text, Time, Uuid } from '#server/http/schemas.ts'
import { Project } from '#server/projects/shapes.ts'

const Role = z.enum(organizationRoles, `must be one of ${organizationRoles.join(', ')}`)
const Organization = answer('organization_json', { is_personal: z.boolean(), role: Role }, 'control')
const Member = z.strictObject({
  developer_id: Uuid,
  email: z.string(),
  name: z.string().nullable(),
  role: Role,
  joined_at: Time,
})
const Invite = answer(
  'organization_invite_json',
  { role: Role, status: z.enum(['pending', 'accepted', 'revoked', 'expired']) },
  'control',
)

export const organizations = area({
  stem: 'organizations',
  title: 'Organizations',
  part: 'Platform',
  about: 'Who shares projects: members with roles, invites, transfers.',
  words: {
    role: ['Role', 'Viewers read, developers build, admins manage people and keys, owners may do all.'],
    token: ['Invitation', 'The token in the link of the mail.'],
  },
  routes: [
    ...group('/admin/organizations', organizationMember, [
      route('POST /', 'Create an organization, with the caller as its owner', {
        handle: create,
        calls: ['organization_create'],
        caller: developer,
        body: z.object({ name: Line(200, 1) }),
        example: { name: 'Example Ltd' },
        replies: { 201: data(Organization) },
      }),
      route('GET /', "The developer's organizations, oldest membership first", {
        call: 'organization_list',
        caller: developer,
        query: Page,
        replies: { 200: page(Organization) },
      }),
      route('GET /:orgId', "An organization, with the caller's role", {
        call: 'organization_get',
        replies: { 200: data(Organization) },
      }),
      route('PATCH /:orgId', 'Rename an organization; its slug stays', {
        call: 'organization_patch',
        body: z.object({ name: Line(200, 1).optional() }),
        example: { name: 'Example Inc' },
        patch: true,
        replies: { 200: data(Organization) },
      }),
      route('DELETE /:orgId', 'Delete an organization that has no projects, with its memberships and invites', {
        call: 'organization_delete',
        rank: 'owner',
        sessionOnly: true,
        replies: { 200: Deleted },
      }),
      route('GET /:orgId/members', 'Members of an organization, longest membership first', {
        call: 'member_list',
        query: Page,
        replies: { 200: page(Member) },
      }),
      route('PATCH /:orgId/members/:developerId', 'Give a member another role; owners are made and lowered by owners', {
        call: 'member_patch',
        sessionOnly: true,
        body: z.object({ role: Role.optional() }),
        example: { role: 'viewer' },
        patch: true,
        replies: { 200: data(Member) },
      }),
      route(
        'DELETE /:orgId/members/:developerId',
        'Remove a member, or leave; the developer loses access to all projects within 30 seconds',
        {
          call: 'member_delete',
          // everybody may leave: whether the caller may remove somebody else is decided with the member's row
          rank: 'viewer',
          sessionOnly: true,
          replies: { 200: Deleted },
        },
      ),
      route('POST /:orgId/invites', 'Invite an address by mail, for seven days', {
        handle: invite,
        calls: ['organization_invite_create'],
        sessionOnly: true,
        body: z.object({ email: Email, role: Role }),
        example: { email: 'colleague@example.com', role: 'developer' },
        replies: { 201: data(Invite) },
        refusals: { 429: ['RATE_LIMIT_EXCEEDED'] },
      }),
      route('GET /:orgId/invites', 'Invites of an organization, newest first; kept 90 days after their end', {
        call: 'organization_invite_list',
        query: Page,
        replies: { 200: page(Invite) },
      }),
      route('DELETE /:orgId/invites/:inviteId', 'Revoke an invite', {
        call: 'organization_invite_delete',
        sessionOnly: true,
        replies: { 200: Deleted },
      }),
    ]),
    ...group('/admin/invites', developer, [
      route('POST /accept', 'Accept an invite with the token of the mail, as the developer with the invited address', {
        handle: accept,
        calls: ['organization_invite_accept'],
        sessionOnly: true,
        body: z.object({ token: Text(200, 1) }),
        example: { token: 'the token of the mail' },
        replies: { 200: data(Member.extend({ organization_id: Uuid, organization_name: z.string() })) },
        refusals: { 429: ['RATE_LIMIT_EXCEEDED'] },
      }),
    ]),
    ...group('/admin/projects/:projectId/transfer', projectOwner, [
      route('POST /', 'Move a project into another organization, as owner of both', {
        call: 'project_transfer',
        rank: 'owner',
        sessionOnly: true,
        body: z.object({ organization_id: Uuid }),
        example: { organization_id: '00000000-0000-4000-8000-000000000000' },
        args: ({ params }) => ({ project_id: params['projectId'] }),
        replies: { 200: data(Project) },
      }),
    ]),
  ],
})
